"""What the project needs, and nothing else."""

SECRET_KEY = "only-an-example"
ALLOWED_HOSTS = ["127.0.0.1"]
ROOT_URLCONF = "django_shop.urls"
INSTALLED_APPS = ["hustings.django", "django_shop"]
USE_TZ = True
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "handlers": {"console": {"class": "logging.StreamHandler"}},
    "loggers": {"hustings": {"handlers": ["console"], "level": "INFO"}},
}
