"""An application of Django's: put "cowpreload.django" into INSTALLED_APPS.

`manage.py check` then says what keeps workers from sharing memory, or what a fork would
break (`checks`); and a server of ours loads, before its first fork, what a warm-up of
pages does not reach (`warming`). Imported by Django alone.
"""
