"""Each worker takes part when it has loaded the application: also with --preload."""


def post_worker_init(worker: object) -> None:
    from flask_app import send_invoices

    send_invoices.start(until_signal=True)
