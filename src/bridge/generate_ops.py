"""Writes the table of operator overloads that the bridge registers.

Input: the rows of the lowering table (src/aten/*.inc) and the installed torch's native_functions.yaml. For each row
that names a functional overload, the overload and its in-place, out= and mutable variants are listed; how their
arguments map to the functional ones is found by name at run time. Structured overloads without a row are listed as
fallbacks, so that the account names what the user called and not the structured `.out`.

The last column is how the dispatcher passes the arguments, if it is one of the signatures that op_register.cpp takes
unboxed.

Usage: generate_ops.py <folder of src/aten> <output file>
"""

import os
import re
import sys

# Composite operators that tests and users look for by name; they compute no gradient of their own.
COMPOSITES = {"isfinite", "isinf", "isreal", "isposinf", "isneginf"}
# Operators that the bridge itself implements (tensors.cpp, copy.cpp, composites.cpp).
OWN = {"copy_", "_copy_from", "_copy_from_and_resize", "resize_", "set_", "record_stream", "_local_scalar_dense",
       "empty.memory_format", "empty_strided", "as_strided", "view", "_unsafe_view", "_reshape_alias", "unfold",
       "isin.Tensor_Tensor", "nonzero", "nonzero.out", "masked_select", "masked_select.out", "equal", "native_batch_norm",
       "native_batch_norm.out", "multinomial", "multinomial.out", "repeat_interleave.Tensor",
       "_unique", "_unique2", "unique_dim", "unique_dim_consecutive", "unique_consecutive",
       "randperm.generator_out", "_efficientzerotensor"}


LETTERS = {"const at::Tensor &": "T", "const at::Scalar &": "S", "at::Tensor &": "W"}
UNBOXED = {"T", "TT", "TTS", "TS", "TTT", "W", "WT", "WTS", "WS", "TW", "TTW"}


def signature(function) -> str:
    from torchgen.api.types import DispatcherSignature
    from torchgen.local import parametrize

    is_const = function.use_const_ref_for_mutable_tensors
    with parametrize(use_const_ref_for_mutable_tensors=is_const, use_ilistref_for_tensor_lists=False):
        dispatcher = DispatcherSignature.from_schema(function.func)
        letters = "".join(LETTERS.get(argument.type, "?") for argument in dispatcher.arguments())
        returned = dispatcher.returns_type().cpp_type()
    returns = "at::Tensor &" if "W" in letters else "at::Tensor"
    return letters if letters in UNBOXED and returned == returns else "Boxed"


def lowered_names(folder: str) -> list[str]:
    names = []
    for file in sorted(os.listdir(folder)):
        if file.endswith(".inc"):
            text = open(os.path.join(folder, file)).read()
            text = re.sub(r"//[^\n]*", "", text)
            names += re.findall(r'\bTN_ATEN\(\s*"([^"]+)"', text)
    return names


def has_derivative(yaml_path: str) -> set[str]:
    names = set()
    for line in open(yaml_path):
        match = re.match(r"- name: ([\w.]+)\(", line)
        if match:
            names.add(match.group(1))
    return names


def main() -> None:
    import torchgen
    from torchgen.gen import parse_native_yaml, pre_group_native_functions
    from torchgen.model import BaseTy, BaseType, DispatchKey, ListType, SchemaKind

    folder, output = sys.argv[1:]
    packaged = os.path.join(os.path.dirname(torchgen.__file__), "packaged")
    native = os.path.join(packaged, "ATen", "native")
    parsed = parse_native_yaml(
        os.path.join(native, "native_functions.yaml"), os.path.join(native, "tags.yaml")
    )
    functions = parsed.native_functions
    derivatives = has_derivative(os.path.join(packaged, "autograd", "derivatives.yaml"))
    lowered = set(lowered_names(folder))
    kinds = {
        SchemaKind.functional: "Functional",
        SchemaKind.inplace: "InPlace",
        SchemaKind.out: "Out",
        SchemaKind.mutable: "Mutable",
    }

    def returns_tensors(function) -> bool:
        """Tensors, or integers beside tensors (sizes that a lowering knows)."""
        kinds = [r.type.elem if isinstance(r.type, ListType) else r.type for r in function.func.returns]
        tensor, integers = BaseType(BaseTy.Tensor), (BaseType(BaseTy.int), BaseType(BaseTy.SymInt))
        return all(kind == tensor or (kind in integers and tensor in kinds) for kind in kinds)

    def runs_as_one_on_cpu(function) -> bool:
        """A composite with a CPU kernel beside it (silu_backward): CPU takes no gradient through its parts either."""
        return bool(function.structured_delegate) or parsed.backend_indices[DispatchKey.CPU].has_kernel(function)

    def may_register(function) -> bool:
        name = str(function.func.name)
        if name in OWN or not returns_tensors(function) or function.manual_kernel_registration:
            return False
        if function.is_view_op:
            return False
        if function.has_composite_implicit_autograd_kernel and not runs_as_one_on_cpu(function):
            is_differentiable = f"{name}_backward" in lowered or "backward" in name
            return name in COMPOSITES or (name in derivatives and is_differentiable)
        return True

    rows = []
    found = set()
    for group in pre_group_native_functions(functions).values():
        functional = group.get(SchemaKind.functional)
        row = str(functional.func.name) if functional else None
        if row in lowered:
            found.add(row)
        for kind, function in group.items():
            name = str(function.func.name)
            if kind not in kinds:
                continue
            if row in lowered and may_register(function):
                if not functional or functional.is_view_op:
                    continue
                rows.append((name, row, kinds[kind], signature(function)))
            elif function.structured_delegate and name not in OWN:
                rows.append((name, None, "Fallback", "Boxed"))
    # A row that is not registered would run on the CPU unseen.
    registered = {row for name, row, _, _ in rows if name == row}
    views = {str(function.func.name) for function in functions if function.is_view_op}
    lost = sorted(found - registered - views - OWN)
    if lost:
        raise SystemExit(f"generate_ops: rows whose operator is not registered: {', '.join(lost)}")
    # Overloads whose functional form mutates without saying so in its schema stand alone.
    rows.sort()
    with open(output, "w") as file:
        file.write("// Written by src/bridge/generate_ops.py: overload, row of the lowering table, kind, signature.\n")
        for name, row, kind, unboxed in rows:
            text = f'"{row}"' if row else "nullptr"
            file.write(f'TN_BRIDGE_OP("{name}", {text}, {kind}, {unboxed})\n')
    missing = sorted(lowered - found)
    if missing:
        print(f"generate_ops: rows that are no functional overload of this torch: {', '.join(missing)}")


if __name__ == "__main__":
    main()
