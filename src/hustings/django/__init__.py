"""The jobs of a Django project, in exactly one of its processes.

    INSTALLED_APPS = [..., "hustings.django"]

A job is a function in the module `jobs` of an application, decorated with `@hustings.once`. Each
of these places runs all of them:

    python manage.py hustings_jobs                                    processes for jobs alone
    hustings.django.start_jobs()                                      wsgi.py, beside the requests
    application = hustings.django.with_jobs(get_asgi_application())   asgi.py, likewise

Law: to be among the installed applications starts nothing. `migrate`, `shell` and a server's master
load them, too.
"""

from hustings.django.discovery import find_jobs, start_jobs, with_jobs

__all__ = ["find_jobs", "start_jobs", "with_jobs"]
