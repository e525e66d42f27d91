"""The ASGI way in: `shop.asgi:application`.

Gives `application`; when this module has been imported, the catalogue is in memory.
"""

import os

from django.core.asgi import get_asgi_application

from . import startup

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "shop.settings")

application = get_asgi_application()
startup.load()
