"""Records an FX graph of ATen calls into a trace of the core."""

import math
import operator
from collections.abc import Callable
from typing import Any

import torch
from torch import fx

from .. import _C
from .decompositions import overload_name

# Functions of Python numbers that FX graphs hold, and sympy's classes of the same, by the trace's names.
_NUMBER_OPERATORS: dict[Any, str] = {
    operator.add: "add",
    operator.sub: "sub",
    operator.mul: "mul",
    operator.truediv: "truediv",
    operator.floordiv: "floordiv",
    operator.mod: "mod",
    operator.pow: "pow",
    pow: "pow",
    operator.lshift: "lshift",
    operator.rshift: "rshift",
    operator.neg: "neg",
    operator.abs: "abs",
    abs: "abs",
    operator.eq: "eq",
    operator.ne: "ne",
    operator.lt: "lt",
    operator.le: "le",
    operator.gt: "gt",
    operator.ge: "ge",
    operator.and_: "and",
    operator.or_: "or",
    round: "round",
    math.floor: "floor",
    math.ceil: "ceil",
    math.trunc: "trunc",
    math.sqrt: "sqrt",
    torch.sym_max: "max",
    torch.sym_min: "min",
    torch.sym_not: "not",
    torch.sym_int: "trunc",
    torch.sym_float: "float",
    torch._sym_sqrt: "sqrt",
    torch._sym_log2: "log2",
}
_EXPRESSIONS: dict[str, str] = {
    "Add": "add",
    "Mul": "mul",
    "Pow": "pow",
    "PowByNatural": "pow",
    "FloatPow": "pow",
    "IntTrueDiv": "truediv",
    "FloatTrueDiv": "truediv",
    "FloorDiv": "floordiv",
    "CleanDiv": "floordiv",
    "PythonMod": "mod",
    "Mod": "mod",
    "LShift": "lshift",
    "RShift": "rshift",
    "Max": "max",
    "Min": "min",
    "Abs": "abs",
    "ToFloat": "float",
    "TruncToInt": "trunc",
    "FloorToInt": "floor",
    "CeilToInt": "ceil",
    "RoundToInt": "round",
    "OpaqueUnaryFn_sqrt": "sqrt",
    "OpaqueUnaryFn_exp": "exp",
    "OpaqueUnaryFn_log": "log",
    "OpaqueUnaryFn_log2": "log2",
    "Equality": "eq",
    "Unequality": "ne",
    "StrictLessThan": "lt",
    "LessThan": "le",
    "StrictGreaterThan": "gt",
    "GreaterThan": "ge",
    "And": "and",
    "Or": "or",
    "Not": "not",
}
_INTEGER_ONLY = ("floor", "ceil", "trunc", "round")  # an integer is its own


# What AOTAutograd wraps a random operator in that backward repeats.
_SAVE_STATE = torch.ops.higher_order.run_and_save_rng_state
_RUN_WITH_STATE = torch.ops.higher_order.run_with_rng_state


class UnsupportedGraph(Exception):
    """A node that a trace cannot hold; the message names it and the user's line."""


def _where(node: fx.Node) -> str:
    """The user's line that |node| comes from, or "" if the graph does not say."""
    lines = [line.strip() for line in (node.stack_trace or "").splitlines() if line.strip().startswith("File")]
    return f" ({lines[-1]})" if lines else ""


def _is_token(node: fx.Node, user: fx.Node) -> bool:
    """Whether |node| orders calls with effects for |user|: calls of a trace keep their order anyway."""
    return user.target is torch.ops.higher_order.with_effects and user.args[0] is node


def _is_saved_state(node: fx.Node) -> bool:
    return node.target is operator.getitem and node.args[1] == 0 and node.args[0].target is _SAVE_STATE


def _tensor_of(item: Any) -> Any:
    """The meta tensor of a graph's output; None for what is no tensor of the device."""
    value = item.meta.get("val") if isinstance(item, fx.Node) and not _is_saved_state(item) else None
    return value if isinstance(value, torch.Tensor) and value.layout == torch.strided else None


def _storage_of(node: fx.Node) -> Any:
    value = _tensor_of(node)
    return None if value is None else value.untyped_storage()._cdata


def _root(node: fx.Node, storage: Any) -> fx.Node:
    """The first of the views that lead to |node|."""
    while True:
        sources = node.all_input_nodes
        if node.target is operator.getitem:
            sources = [source for call in sources for source in call.all_input_nodes]
        before = [source for source in sources if _storage_of(source) == storage]
        if not before:
            return node
        node = before[0]


class Recorder:
    """Walks one graph. After |record|, |trace| runs it and |constants| follow the graph's own inputs."""

    def __init__(self, graph_module: fx.GraphModule, name: str) -> None:
        self.trace = _C.Trace(name)
        self.constants: list[torch.Tensor] = []
        self.generator_states: set[int] = set()  # inputs that stay on the CPU
        self._param_count = 0
        self.outputs: list[tuple[int, Any]] = []  # result; sizes, strides and offset it is seen with (None: as it is)
        self.root_strides: dict[int, list[tuple[bool, int]]] = {}  # of results that others are views of
        self._module = graph_module
        self._values: dict[fx.Node, Any] = {}
        self._calls: dict[fx.Node, int] = {}
        self._symbols: dict[Any, Any] = {}

    def record(self) -> None:
        """Raises UnsupportedGraph at the first node that does not fit."""
        handlers: dict[str, Callable[[fx.Node], None]] = {
            "placeholder": self._placeholder,
            "get_attr": self._attribute,
            "call_function": self._call,
            "output": self._output,
        }
        nodes = list(self._module.graph.nodes)
        for op in ("placeholder", "get_attr"):  # parameters first: their order is that of the inputs
            for node in nodes:
                if node.op == op:
                    handlers[op](node)
        for node in nodes:
            if node.op in ("placeholder", "get_attr"):
                continue
            if node.op not in handlers:
                raise UnsupportedGraph(f"{node.op} {node.target}{_where(node)}")
            handlers[node.op](node)

    # ---- inputs ----------------------------------------------------------------------------------------------
    def _placeholder(self, node: fx.Node) -> None:
        value = node.meta.get("val")
        param: Any = None  # absent at run time, too
        if any(_is_token(node, user) for user in node.users):
            pass
        elif any(user.target is _RUN_WITH_STATE and user.args[0] is node for user in node.users):
            param = self.trace.generator_state_param()
            self.generator_states.add(self._param_count)
        elif isinstance(value, torch.Tensor):
            param = self.trace.tensor_param()
            for dim, size in enumerate(value.shape):
                self._learn(size, lambda p=param, d=dim: self.trace.size(p, d))
        elif isinstance(value, (int, torch.SymInt)):
            param = self.trace.int_param()
            self._learn(value, lambda p=param: p)
        elif isinstance(value, (float, torch.SymFloat)):
            param = self.trace.float_param()
            self._learn(value, lambda p=param: p)
        elif value is not None or node.users:
            raise UnsupportedGraph(f"an input of type {type(value).__name__}: {node.name}")
        self._param_count += param is not None
        self._values[node] = param

    def _learn(self, size: Any, value: Callable[[], Any]) -> None:
        """A symbol that is exactly the size of an input can be read from it."""
        if isinstance(size, (torch.SymInt, torch.SymFloat)):
            expression = size.node.expr
            if expression.is_Symbol and expression not in self._symbols:
                self._symbols[expression] = value()

    def _attribute(self, node: fx.Node) -> None:
        value: Any = self._module
        for part in str(node.target).split("."):
            value = getattr(value, part)
        if not isinstance(value, torch.Tensor):
            raise UnsupportedGraph(f"attribute {node.target} of type {type(value).__name__}{_where(node)}")
        self.constants.append(value)
        self._values[node] = self.trace.tensor_param()

    # ---- calls -----------------------------------------------------------------------------------------------
    def _argument(self, value: Any) -> Any:
        if isinstance(value, fx.Node):
            return self._value(value)
        if isinstance(value, (torch.SymInt, torch.SymFloat)):
            return self._expression(value.node.expr)
        if isinstance(value, (list, tuple)):
            return [self._argument(item) for item in value]
        return value

    def _value(self, node: fx.Node) -> Any:
        if node not in self._values and node in self._calls:
            self._values[node] = self.trace.result(self._calls[node])
        return self._values[node]

    def _call(self, node: fx.Node) -> None:
        target = node.target
        if target is operator.getitem:
            source, index = node.args
            if source.target is _SAVE_STATE:
                self._result_of_saved(node, source, index)
                return
            if source.target is torch.ops.higher_order.with_effects:
                index -= 1  # the token comes first
            self._values[node] = self.trace.result(self._calls[source], index) if index >= 0 else None
        elif target in _NUMBER_OPERATORS:
            self._values[node] = self._number(node)
        elif target is torch.ops.aten.sym_size.int:
            self._values[node] = self.trace.size(self._value(node.args[0]), node.args[1])
        elif target is torch.ops.aten.sym_stride.int:
            self._values[node] = self.trace.stride(self._value(node.args[0]), node.args[1])
        elif target is torch.ops.aten.sym_numel.default:
            self._values[node] = self.trace.numel(self._value(node.args[0]))
        elif target is torch.ops.aten.copy_.default:
            param, value = self._value(node.args[0]), self._value(node.args[1])
            self.trace.copy_to(param, value)
            self._values[node] = value
        elif target is torch.ops.prims.convert_element_type.default:
            arguments = [self._value(node.args[0])]
            self._calls[node] = self.trace.call("_to_copy", arguments, {"dtype": node.args[1]})
        elif target is torch.ops.higher_order.with_effects:
            self._operator(node, node.args[1], node.args[2:])
        elif target is _SAVE_STATE:
            self._operator(node, node.args[0], node.args[1:])
        elif target is _RUN_WITH_STATE:
            self._operator(node, node.args[1], node.args[2:])
            self.trace.set_generator_state(self._calls[node], self._value(node.args[0]))
        else:
            self._operator(node, target, node.args)

    def _result_of_saved(self, node: fx.Node, source: fx.Node, index: int) -> None:
        """|source| is (state of the generator, what the operator returns, a tensor or a tuple)."""
        call = self._calls[source]
        if index == 0:
            self._values[node] = self.trace.generator_state(call)
        else:
            self._calls[node] = call

    def _operator(self, node: fx.Node, target: Any, args: Any) -> None:
        if not isinstance(target, torch._ops.OpOverload) or target.namespace != "aten":
            raise UnsupportedGraph(f"{target}{_where(node)}")
        keywords = {name: self._argument(value) for name, value in node.kwargs.items()}
        try:
            arguments = [self._argument(argument) for argument in args]
            self._calls[node] = self.trace.call(overload_name(target), arguments, keywords)
        except (TypeError, NotImplementedError) as error:
            raise UnsupportedGraph(f"{target}: {error}{_where(node)}") from error

    # ---- results ---------------------------------------------------------------------------------------------
    def _output(self, node: fx.Node) -> None:
        results, strides = [], []

        def add(item: Any) -> int:
            results.append(self._argument(item))
            value = _tensor_of(item)
            strides.append([self._integer(s) for s in value.stride()] if value is not None else None)
            return len(results) - 1

        def numbers(values: Any) -> list[tuple[bool, int]]:
            """Each value, or the result beside that holds it once sizes are known."""
            found = []
            for value in values:
                if not isinstance(value, int):
                    results.append(self._integer(value))
                    strides.append(None)
                found.append((isinstance(value, int), value if isinstance(value, int) else len(results) - 1))
            return found

        roots = self._shared_roots(node.args[0])
        places: dict[fx.Node, int] = {}
        for item in node.args[0]:
            root = roots.get(item) if isinstance(item, fx.Node) else None
            if root is None:
                self.outputs.append((add(item), None))
                continue
            if root not in places:
                places[root] = add(root)
                self.root_strides[places[root]] = numbers(_tensor_of(root).stride())
            value = _tensor_of(item)
            seen = None
            if item is not root:
                seen = (numbers(value.shape), numbers(value.stride()), numbers([value.storage_offset()]))
            self.outputs.append((places[root], seen))
        self.trace.set_results(results, strides)

    def _shared_roots(self, items: Any) -> dict[fx.Node, fx.Node]:
        """The outputs that share memory with another one, each with the node whose memory it is.

        What shares memory with an input is not among them: AOTAutograd makes such outputs itself.
        """
        own = {_storage_of(n) for n in self._module.graph.nodes if n.op in ("placeholder", "get_attr")}
        groups: dict[Any, list[fx.Node]] = {}
        for item in items:
            if _tensor_of(item) is not None:
                groups.setdefault(_storage_of(item), []).append(item)
        found = {}
        for storage, group in groups.items():
            if len(group) == 1 or storage in own:
                continue
            root = _root(group[0], storage)
            offset = _tensor_of(root).storage_offset()
            if isinstance(offset, int) and offset == 0:
                found.update(dict.fromkeys(group, root))
        return found

    def finish(self, results: list[Any]) -> list[Any]:
        """The graph's outputs from the results of its trace."""

        def known(values: list[tuple[bool, int]]) -> list[int]:
            return [value if is_known else results[value] for is_known, value in values]

        for place, values in self.root_strides.items():
            strides, root = known(values), results[place]
            if list(root.stride()) != strides:  # an operator that fell back returned another layout
                results[place] = torch.empty_strided(root.shape, strides, dtype=root.dtype, device=root.device)
                results[place].copy_(root)
        outputs = []
        for place, seen in self.outputs:
            root = output = results[place]
            if seen is not None:
                # No view for autograd, only the same memory: the outputs may differ in what they require.
                output = torch.empty(0, dtype=root.dtype, device=root.device)
                offset = root.storage_offset() + known(seen[2])[0]
                output.set_(root.untyped_storage(), offset, known(seen[0]), known(seen[1]))
            outputs.append(output)
        return outputs

    # ---- numbers ---------------------------------------------------------------------------------------------
    def _integer(self, value: Any) -> Any:
        return self._expression(value.node.expr) if isinstance(value, torch.SymInt) else int(value)

    def _number(self, node: fx.Node) -> Any:
        """A node that computes with Python numbers; with more than two operands they meet one after the other."""
        name = _NUMBER_OPERATORS[node.target]
        given = [argument for argument in node.args if argument is not None]  # round(x, None)
        if node.kwargs or (name == "round" and len(given) != 1):
            raise UnsupportedGraph(f"{node.target} with these arguments{_where(node)}")
        is_float = [isinstance(self._meaning(argument), (float, torch.SymFloat)) for argument in given]
        arguments = [self._argument(argument) for argument in given]
        if name in _INTEGER_ONLY and not is_float[0]:
            return arguments[0]
        if name == "pow" and isinstance(node.meta.get("val"), (float, torch.SymFloat)) and not any(is_float):
            arguments[0] = self.trace.number_op("float", arguments[0])
        return self._fold(name, arguments)

    @staticmethod
    def _meaning(argument: Any) -> Any:
        return argument.meta.get("val") if isinstance(argument, fx.Node) else argument

    def _fold(self, name: str, arguments: list[Any]) -> Any:
        if len(arguments) == 1:
            return self.trace.number_op(name, arguments[0])
        result = arguments[0]
        for argument in arguments[1:]:
            result = self.trace.number_op(name, result, argument)
        return result

    def _expression(self, expression: Any) -> Any:
        """An expression of sympy over the symbols of the inputs."""
        if expression.is_Integer:
            return int(expression)
        if expression.is_Float or expression.is_Rational:
            return float(expression)
        if expression.is_Symbol:
            if expression not in self._symbols:
                raise UnsupportedGraph(f"the size {expression}, which no input has")
            return self._symbols[expression]
        kind = type(expression).__name__
        arguments = [self._expression(argument) for argument in expression.args]
        if kind == "ModularIndexing":  # (x // y) % z
            return self._fold("mod", [self._fold("floordiv", arguments[:2]), arguments[2]])
        if kind == "Identity":
            return arguments[0]
        name = _EXPRESSIONS.get(kind)
        if name is None:
            raise UnsupportedGraph(f"the expression {expression}")
        if name in _INTEGER_ONLY and expression.args[0].is_integer:
            return arguments[0]
        if kind == "FloatPow" or (name == "pow" and expression.is_integer is False):
            arguments[0] = self.trace.number_op("float", arguments[0])
        return self._fold(name, arguments)
