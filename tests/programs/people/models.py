"""A user who is known by an address, and has no name."""

from django.contrib.auth.base_user import AbstractBaseUser, BaseUserManager
from django.db import models


class Person(AbstractBaseUser):
    email = models.EmailField(unique=True)
    is_active = models.BooleanField(default=True)
    objects = BaseUserManager()
    USERNAME_FIELD = "email"
