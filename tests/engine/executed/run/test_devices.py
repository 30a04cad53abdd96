"""Devices have short names, and a page says on which it ran."""

import pytest

from executed.options import Options
from executed.run.devices import model_name, short_name, this_device


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("NVIDIA A100-SXM4-80GB", "a100"),
        ("NVIDIA A100 80GB PCIe", "a100"),
        ("NVIDIA H200", "h200"),
        ("NVIDIA H100 80GB HBM3", "h100"),
        ("NVIDIA H100 NVL", "h100"),
        ("NVIDIA GH200 480GB", "gh200"),
        ("NVIDIA L40S", "l40s"),
        ("NVIDIA GeForce RTX 4090", "rtx4090"),
        ("GeForce GTX 1080 Ti", "gtx1080ti"),
        ("Quadro RTX 8000", "rtx8000"),
        ("Tesla T4", "t4"),
        ("Tesla V100-SXM2-16GB", "v100"),
        ("Tesla P100-PCIE-16GB", "p100"),
        ("AMD Instinct MI300X", "mi300x"),
        ("TPU v5 lite", "v5e"),
        ("TPU v6 lite", "v6e"),
        ("TPU v4", "v4"),
        ("TPU v5p", "v5p"),
        ("TPU7x", "7x"),
        ("TPU", "tpu"),
    ],
)
def test_the_short_name_of_a_model(kind, name):
    assert model_name(kind) == name


def test_the_short_name_of_a_device():
    assert short_name("gpu", "NVIDIA A100-SXM4-80GB") == "gpu-a100"
    assert short_name("tpu", "TPU v5 lite") == "tpu-v5e"
    assert short_name("cpu", "whatever") == "cpu"


def options(expression, module="json"):
    return {"frameworks": {"one": {"modules": [module], "device": expression}}}


def test_a_framework_is_asked_for_the_device_of_this_machine():
    assert this_device(Options(**options("('gpu', 'NVIDIA ' + json.dumps(7))"))) == "gpu-7"
    assert this_device(Options(**options("('cpu', 'x')"))) == "cpu"
    with pytest.raises(RuntimeError, match="one cannot be asked for its device: ZeroDivision"):
        this_device(Options(**options("1 / 0")))
    with pytest.raises(RuntimeError, match="none of the book's frameworks"):
        this_device(Options())


CELL = "import colorsys"
SAYS = "('gpu', 'NVIDIA A100-SXM4-80GB') if colorsys.rgb_to_hls else None"


def test_a_page_says_on_which_device_it_ran(project, execute):
    project.page("a/one", project.cell(CELL))
    found = execute("a/one", device="gpu-a100", **options(SAYS, "colorsys"))["a/one"]
    assert not found.failures
    facts = found.outputs.facts
    assert (facts.device, facts.device_kind) == ("gpu-a100", "NVIDIA A100-SXM4-80GB")
    assert facts.process == "own"


def test_a_page_that_ran_elsewhere_fails(project, execute):
    project.page("a/one", project.cell(CELL))
    project.page("a/none", project.cell("1"))
    found = execute("a/one", "a/none", **options(SAYS, "colorsys"))
    (failure,) = found["a/one"].failures
    assert failure.line == project.line("a/one", CELL) - 1
    assert failure.message == (
        "cell 1: the page is executed for device 'cpu', but the kernel ran on 'gpu-a100'; "
        "set BOOK_DEVICE to the device that is meant"
    )
    # A page without a framework ran wherever the build runs.
    assert not found["a/none"].failures
    assert found["a/none"].outputs.facts.device == "cpu"


def test_the_first_registered_framework_of_a_page_decides(project, execute):
    frameworks = {
        "first": {"modules": ["colorsys"], "device": "('cpu', 'first')"},
        "second": {"modules": ["ftplib"], "device": "('cpu', 'second')"},
        "unused": {"modules": ["wave"], "device": "1 / 0"},
    }
    project.page("a/both", project.cell("import ftplib, colorsys"))
    project.page("a/second", project.cell("import ftplib"))
    found = execute("a/both", "a/second", frameworks=frameworks)
    kinds = {name: one.outputs.facts.device_kind for name, one in found.items()}
    assert kinds == {"a/both": "first", "a/second": "second"}


def test_names_of_a_page_do_not_change_whom_the_kernel_asks(project, execute):
    own = "import colorsys\nnext = tuple = map = str = sys = module = None"
    project.page("a/one", project.cell(own))
    found = execute("a/one", **options("('cpu', colorsys.__name__)", "colorsys"))["a/one"]
    assert not found.failures
    assert found.outputs.facts.device_kind == "colorsys"


HIDING = {
    "the module": ("import sys\nsys.modules['colorsys'] = None", "AttributeError"),
    "its function": ("colorsys.rgb_to_hls = None", "TypeError: 'NoneType'"),
}


def test_a_page_that_hides_its_device_fails_alone(project, execute):
    names = {case: f"a/p{number}" for number, case in enumerate(HIDING)}
    for case, name in names.items():
        project.page(name, project.cell("import colorsys"), project.cell(HIDING[case][0]))
    project.page("a/good", project.cell("import colorsys"))
    expression = "(lambda hue, *rest: ('cpu', hue))(*colorsys.rgb_to_hls(0, 0, 0))"
    found = execute(*names.values(), "a/good", **options(expression, "colorsys"))
    for case, name in names.items():
        (failure,) = found[name].failures
        why = "cell 2: cannot be asked on which device the page ran"
        assert failure.message.startswith(why), case
        assert HIDING[case][1] in failure.message, case
    assert not found["a/good"].failures
