"""Network namespaces with two ports, as the tests of host settings have them."""

from tests.host.conftest import make_namespace, namespace

__all__ = ["make_namespace", "namespace"]
