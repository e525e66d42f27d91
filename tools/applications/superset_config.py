"""Superset on SQLite, where everybody is the administrator: for 127.0.0.1 alone."""

import os

SECRET_KEY = "of a database that holds nothing; 42 bytes and more"
SQLALCHEMY_DATABASE_URI = f"sqlite:///{os.environ['SUPERSET_HOME']}/superset.db"
WTF_CSRF_ENABLED = TALISMAN_ENABLED = False
AUTH_ROLE_PUBLIC = PUBLIC_ROLE_LIKE = "Admin"
