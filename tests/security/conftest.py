from tests.flower.conftest import _task_identity as _task_identity
