"""Wagtail with an administrator and pages, in the database that DJANGO_* names."""

import django

django.setup()

from django.contrib.auth import get_user_model  # noqa: E402
from home.models import HomePage  # noqa: E402

get_user_model().objects.create_superuser("admin", "admin@localhost", "admin")
home = HomePage.objects.get()
for number in range(40):
    home.add_child(instance=HomePage(title=f"Page {number}", slug=f"page-{number}"))
