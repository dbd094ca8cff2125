# The bridge, written in C++ (src/bridge/module.cpp).
from typing import Any

def __getattr__(name: str) -> Any: ...
