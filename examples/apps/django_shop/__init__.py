"""A Django project with one application and one job."""
