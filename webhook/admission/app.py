"""The Flask application: routes for any WSGI server, and answers to requests that are not reviews.

Under `gpu-webhook serve` the admission paths are answered before Flask's router, which takes as
long as all rules together (serving/asgi.py); a test checks that both ways return the same bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flask import Flask, Response, request
from werkzeug.exceptions import HTTPException, NotFound

from webhook.admission.decide import PATHS
from webhook.admission.endpoint import LARGEST_BODY, TEXT, Answer, Endpoint, refusal

if TYPE_CHECKING:
    from werkzeug.sansio.response import Response as AnyResponse


def create_app(endpoint: Endpoint) -> Flask:
    """The application around one endpoint."""
    app = Flask("webhook", static_folder=None)
    app.config["MAX_CONTENT_LENGTH"] = LARGEST_BODY

    @app.before_request
    def take_paths_as_written() -> None:
        """Reject //mutate, which Werkzeug treats as /mutate."""
        if request.environ["PATH_INFO"] != request.path:
            raise NotFound

    def admit() -> Response:
        return _flask(
            endpoint.post(
                request.path,
                request.headers.get("Content-Type", ""),
                request.headers.get("Content-Encoding", ""),
                request.get_data(cache=False),
            )
        )

    for path in PATHS:
        app.add_url_rule(path, path, admit, methods=["POST"])

    @app.get("/healthz")
    def healthz() -> Response:
        return _flask(endpoint.healthz())

    @app.get("/readyz")
    def readyz() -> Response:
        return _flask(endpoint.readyz())

    @app.errorhandler(HTTPException)
    def refuse(error: HTTPException) -> AnyResponse:
        """The error as one line of text, with headers such as Allow."""
        answer = error.get_response()
        text = refusal(error.code or 400, f"{request.method} {error.name.lower()}. {_PATHS}")
        answer.set_data(text.body)
        answer.content_type = TEXT
        return answer

    return app


_PATHS = "POST reviews to /mutate, /validate, /guard or /guard/refuse; GET /healthz and /readyz"


def _flask(answer: Answer) -> Response:
    return Response(answer.body, answer.status, content_type=answer.content_type)
