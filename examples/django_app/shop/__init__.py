"""The Django project: settings, addresses and the two ways in (WSGI and ASGI)."""
