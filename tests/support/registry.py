"""A registry of container images on this machine, as far as `docker pull` asks it."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"


@contextlib.contextmanager
def registry(name: str, tar: bytes, *, path: str, truncated: bool = False) -> Iterator[str]:
    """Serve one image of one layer.

    Args:
        name: Name of the image, without tag.
        tar: Its root file system.
        path: PATH of its containers.
        truncated: Whether the layer ends before its end.

    Yields:
        The full name of the image, tagged ``1``.
    """
    layer = gzip.compress(tar, 1)
    config = json.dumps(
        {
            "architecture": "amd64",
            "os": "linux",
            "config": {"Env": [f"PATH={path}"]},
            "rootfs": {"type": "layers", "diff_ids": [_digest(tar)]},
        }
    ).encode()
    blobs = {_digest(content): content for content in (layer, config)}
    described = [{"size": len(content), "digest": _digest(content)} for content in (config, layer)]
    manifest = json.dumps(
        {
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": {"mediaType": "application/vnd.docker.container.image.v1+json", **described[0]},
            "layers": [{"mediaType": "application/vnd.docker.image.rootfs.diff.tar.gzip", **described[1]}],
        }
    ).encode()
    if truncated:
        blobs[_digest(layer)] = layer[:-100]

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            content, kind = b"{}", "application/json"
            if "/manifests/" in self.path:
                content, kind = manifest, MANIFEST
            elif "/blobs/" in self.path:
                content, kind = blobs[self.path.rpartition("/")[2]], "application/octet-stream"
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content)))
            if kind == MANIFEST:
                self.send_header("Docker-Content-Digest", _digest(manifest))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(content)

        do_HEAD = do_GET

        def log_message(self, *_: object) -> None:
            return

    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield f"127.0.0.1:{server.server_address[1]}/{name}:1"
        finally:
            server.shutdown()
            thread.join(10)


def _digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"
