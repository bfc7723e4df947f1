"""Servers that send answers of wrong lengths."""

import contextlib
import importlib.util
import pathlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType
from typing import Any

import exact2048
import grpc
import grpc_tools
import numpy as np
import pytest
from grpc_tools import protoc

PROTO = pathlib.Path(__file__).resolve().parent.parent / "proto"
SERVICE = "/exact2048.v1.Query/"
BOARDS = np.array([0x11, 0x12, 0x21], dtype=np.uint64)


@pytest.fixture(scope="session")
def messages(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    """The query messages, generated from their definition."""
    folder = tmp_path_factory.mktemp("messages")
    files = [str(path) for path in PROTO.rglob("query.proto")]
    own = pathlib.Path(grpc_tools.__file__).parent / "_proto"
    assert protoc.main(["protoc", f"-I{PROTO}", f"-I{own}", f"--python_out={folder}", *files]) == 0
    # Loads the messages by file, because their package has the same name as the tested package.
    (generated,) = folder.rglob("query_pb2.py")
    spec = importlib.util.spec_from_file_location("query_pb2", generated)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@contextlib.contextmanager
def changing(server: str, answer: Any, change: Callable[[Any], object]) -> Iterator[str]:
    """A server that forwards requests to another server, and changes the answers to batches."""
    with grpc.insecure_channel(server.removeprefix("http://")) as channel:

        def get_run(request: bytes, _: object) -> bytes:
            return channel.unary_unary(SERVICE + "GetRun")(request)

        def batch(requests: Iterator[bytes], _: object) -> Iterator[bytes]:
            for data in channel.stream_stream(SERVICE + "BatchGetValues")(requests):
                message = answer.FromString(data)
                change(message)
                yield message.SerializeToString()

        handlers = {
            "GetRun": grpc.unary_unary_rpc_method_handler(get_run),
            "BatchGetValues": grpc.stream_stream_rpc_method_handler(batch),
        }
        with ThreadPoolExecutor(4) as pool:
            serving = grpc.server(pool, [grpc.method_handlers_generic_handler(SERVICE.strip("/"), handlers)])
            port = serving.add_insecure_port("127.0.0.1:0")
            serving.start()
            try:
                yield f"http://127.0.0.1:{port}"
            finally:
                serving.stop(None).wait()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda answer: answer.statuses.pop(), "expected 3 statuses from the server, found 2"),
        (lambda answer: answer.statuses.append(0), "expected 3 statuses from the server, found 4"),
        (lambda answer: [part.pop() for part in [answer.values, answer.answers] if part], "3 answers from the server, found 2"),
        (lambda answer: (answer.ClearField("values"), answer.ClearField("answers")), "answers from the server, found 0"),
        (lambda answer: answer.Clear(), "expected 3 statuses from the server, found 0"),
    ],
)
def test_answers_to_other_boards_are_refused(
    server: str, messages: ModuleType, change: Callable[[Any], object], words: str
) -> None:
    with changing(server, messages.BatchGetValuesResponse, change) as url:
        client = exact2048.Client(url)
        for ask in [client.values, client.action_values, client.best]:
            with pytest.raises(exact2048.ServerError, match=words):
                ask(BOARDS)


@pytest.mark.parametrize(
    "change",
    [
        lambda answer: [of_board.moves.pop() for of_board in answer.answers],
        lambda answer: [of_board.moves.reverse() for of_board in answer.answers],
        lambda answer: [of_board.moves.extend(list(of_board.moves)) for of_board in answer.answers],
    ],
)
def test_answers_with_other_moves_are_refused(
    server: str, messages: ModuleType, change: Callable[[Any], object]
) -> None:
    with changing(server, messages.BatchGetValuesResponse, change) as url:
        with pytest.raises(exact2048.ServerError, match="expected the moves .* from the server"):
            exact2048.Client(url).action_values(BOARDS)


def test_unchanged_answers_are_accepted(run: exact2048.Run, server: str, messages: ModuleType) -> None:
    with changing(server, messages.BatchGetValuesResponse, lambda _: None) as url:
        client = exact2048.Client(url)
        assert (client.values(BOARDS) == run.values(BOARDS)).all()
        assert np.array_equal(client.action_values(BOARDS), run.action_values(BOARDS), equal_nan=True)
