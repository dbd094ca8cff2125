// Trace for Python: conversion of arguments, and the class itself.
#include <torch/csrc/Device.h>
#include <torch/csrc/Dtype.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/Layout.h>
#include <torch/csrc/MemoryFormat.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/utils/pybind.h>

#include "module.h"
#include "trace.h"

namespace py = pybind11;

namespace tn::bridge {
namespace {

TraceValue int_value(Trace& trace, py::handle object) {
  if (py::isinstance<TraceValue>(object)) return object.cast<TraceValue>();
  if (object.is_none()) return TraceValue{};
  IntNode node{IntOp::Constant};
  node.is_float = PyFloat_Check(object.ptr());
  node.constant = node.is_float ? bits_of_double(object.cast<double>()) : object.cast<int64_t>();
  return trace.add_int(node);
}

TraceArg argument(py::handle object) {
  TraceArg arg;
  PyObject* raw = object.ptr();
  if (object.is_none()) return arg;
  if (py::isinstance<TraceValue>(object)) {
    arg.kind = TraceArg::Value;
    arg.value = object.cast<TraceValue>();
    if (arg.value.kind == TraceValue::None) arg.kind = TraceArg::Constant;
  } else if (PyBool_Check(raw)) {
    arg.constant = raw == Py_True;
  } else if (PyLong_Check(raw)) {
    arg.constant = object.cast<int64_t>();
  } else if (PyFloat_Check(raw)) {
    arg.constant = PyFloat_AsDouble(raw);
  } else if (PyComplex_Check(raw)) {
    arg.constant = c10::complex<double>(PyComplex_RealAsDouble(raw), PyComplex_ImagAsDouble(raw));
  } else if (PyUnicode_Check(raw)) {
    arg.constant = object.cast<std::string>();
  } else if (THPDtype_Check(raw)) {
    arg.constant = static_cast<int64_t>(reinterpret_cast<THPDtype*>(raw)->scalar_type);
  } else if (THPLayout_Check(raw)) {
    arg.constant = static_cast<int64_t>(reinterpret_cast<THPLayout*>(raw)->layout);
  } else if (THPMemoryFormat_Check(raw)) {
    arg.constant = static_cast<int64_t>(reinterpret_cast<THPMemoryFormat*>(raw)->memory_format);
  } else if (THPDevice_Check(raw)) {
    arg.constant = reinterpret_cast<THPDevice*>(raw)->device;
  } else if (PyList_Check(raw) || PyTuple_Check(raw)) {
    arg.kind = TraceArg::List;
    for (py::handle item : py::reinterpret_borrow<py::sequence>(object))
      arg.items.push_back(argument(item));
  } else {
    throw py::type_error("trace: cannot record an argument of type " +
                         py::type::handle_of(object).attr("__name__").cast<std::string>());
  }
  return arg;
}

std::vector<TraceItem> inputs_of(py::handle list) {
  std::vector<TraceItem> inputs;
  for (py::handle object : py::reinterpret_borrow<py::sequence>(list)) {
    PyObject* raw = object.ptr();
    if (THPVariable_Check(raw)) inputs.emplace_back(THPVariable_Unpack(raw));
    else if (PyLong_Check(raw)) inputs.emplace_back(object.cast<int64_t>());
    else if (PyFloat_Check(raw)) inputs.emplace_back(object.cast<double>());
    else
      throw py::type_error("trace: an input is a tensor or a number, got " +
                           py::type::handle_of(object).attr("__name__").cast<std::string>());
  }
  return inputs;
}

py::list outputs_of(std::vector<TraceItem> outputs) {
  py::list list(outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (auto* tensor = std::get_if<at::Tensor>(&outputs[i]))
      list[i] = py::reinterpret_steal<py::object>(THPVariable_Wrap(std::move(*tensor)));
    else if (const auto* number = std::get_if<int64_t>(&outputs[i])) list[i] = py::int_(*number);
    else if (const auto* real = std::get_if<double>(&outputs[i])) list[i] = py::float_(*real);
    else list[i] = py::none();
  }
  return list;
}

}  // namespace

void bind_trace(py::module_& m) {
  py::class_<TraceValue>(m, "Value", "A tensor or a number of a trace.")
      .def_property_readonly("is_int",
                             [](const TraceValue& value) { return value.kind == TraceValue::Int; });
  py::class_<Trace>(m, "Trace", "Functional ATen calls and expressions of numbers over parameters.")
      .def(py::init<std::string>(), py::arg("name") = "graph")
      .def("tensor_param", &Trace::add_tensor_param)
      .def("generator_state_param", &Trace::add_generator_state_param)
      .def("int_param", [](Trace& trace) { return trace.add_int_param(false); })
      .def("float_param", [](Trace& trace) { return trace.add_int_param(true); })
      .def(
          "number_op",
          [](Trace& trace, const std::string& name, py::object a, py::object b) {
            return trace.add_number(name, int_value(trace, a), int_value(trace, b));
          },
          py::arg("name"), py::arg("a"), py::arg("b") = py::none())
      .def("size",
           [](Trace& trace, TraceValue tensor, int64_t dim) {
             IntNode node{IntOp::Size, dim};
             node.tensor = tensor;
             return trace.add_int(node);
           })
      .def("stride",
           [](Trace& trace, TraceValue tensor, int64_t dim) {
             IntNode node{IntOp::Stride, dim};
             node.tensor = tensor;
             return trace.add_int(node);
           })
      .def("numel",
           [](Trace& trace, TraceValue tensor) {
             IntNode node{IntOp::Numel};
             node.tensor = tensor;
             return trace.add_int(node);
           })
      .def(
          "call",
          [](Trace& trace, const std::string& name, py::sequence args, py::dict keywords) {
            std::vector<TraceArg> list;
            for (py::handle object : args) list.push_back(argument(object));
            std::vector<std::pair<std::string, TraceArg>> named;
            for (auto item : keywords)
              named.emplace_back(item.first.cast<std::string>(), argument(item.second));
            return trace.add_call(name, std::move(list), named);
          },
          py::arg("name"), py::arg("args"), py::arg("keywords") = py::dict())
      .def(
          "result",
          [](Trace&, int call, int item) { return TraceValue{TraceValue::Result, call, item}; },
          py::arg("call"), py::arg("item") = 0)
      .def("generator_state", &Trace::generator_state, py::arg("call"))
      .def("set_generator_state", &Trace::set_generator_state, py::arg("call"), py::arg("state"))
      .def("copy_to", &Trace::add_copy, py::arg("param"), py::arg("value"))
      .def(
          "set_results",
          [](Trace& trace, py::sequence results, py::object strides) {
            std::vector<TraceValue> values;
            for (py::handle object : results)
              values.push_back(object.is_none() ? TraceValue{} : int_value(trace, object));
            std::vector<std::vector<TraceValue>> all;
            if (!strides.is_none())
              for (py::handle list : py::reinterpret_borrow<py::sequence>(strides)) {
                all.emplace_back();
                if (list.is_none()) continue;
                for (py::handle stride : py::reinterpret_borrow<py::sequence>(list))
                  all.back().push_back(int_value(trace, stride));
              }
            trace.set_results(std::move(values), std::move(all));
          },
          py::arg("results"), py::arg("strides") = py::none())
      .def("run",
           [](Trace& trace, py::handle inputs) {
             std::vector<TraceItem> items = inputs_of(inputs);
             std::vector<TraceItem> outputs;
             torch::PyWarningHandler warnings;  // of operators that fall back
             {
               py::gil_scoped_release unlocked;
               outputs = trace.run(items);
             }
             return outputs_of(std::move(outputs));
           })
      .def("describe",
           [](Trace& trace, py::handle inputs) { return trace.describe(inputs_of(inputs)); })
      .def_property_readonly("program_count", &Trace::program_count)
      .def_property_readonly("last_reason", &Trace::last_reason)
      .def_property_readonly("name", &Trace::name)
      .def_static("can_lower", &Trace::can_lower);
}

}  // namespace tn::bridge
