"""Sign the first user of a Django site in; the Cookie header's value on stdout."""

import time

import django

django.setup()

from django.conf import settings  # noqa: E402
from django.contrib.auth import get_user_model  # noqa: E402
from django.test import Client  # noqa: E402

client = Client()
client.force_login(get_user_model().objects.earliest("pk"))
session = client.session
session["last_login"] = time.time()  # Label Studio signs out who has none
session.save()
client.cookies[settings.SESSION_COOKIE_NAME] = session.session_key  # may be all of it
print("; ".join(f"{name}={each.value}" for name, each in client.cookies.items()))
