"""The WSGI way in: `shop.wsgi:application`.

Gives `application`; when this module has been imported, the catalogue is in memory.
"""

import os

from django.core.wsgi import get_wsgi_application

from . import startup

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "shop.settings")

application = get_wsgi_application()
startup.load()
