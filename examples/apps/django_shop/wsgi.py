"""One of the workers sends the invoices: gunicorn django_shop.wsgi --workers 4"""

import os

from django.core.wsgi import get_wsgi_application

import hustings.django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "django_shop.settings")
application = get_wsgi_application()
hustings.django.start_jobs()
