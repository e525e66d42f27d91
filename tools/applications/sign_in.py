"""Sign the first user of a Django site in; the Cookie header's value on stdout."""

import django

django.setup()

from django.contrib.auth import get_user_model  # noqa: E402
from django.test import Client  # noqa: E402

client = Client()
client.force_login(get_user_model().objects.earliest("pk"))
print("; ".join(f"{name}={each.value}" for name, each in client.cookies.items()))
