# The PyTorch bridge: torch_neuronx._C, and a runnable package tree in the build folder.
find_package(Python REQUIRED COMPONENTS Interpreter Development.Module)
execute_process(
  COMMAND ${Python_EXECUTABLE} -c
          "import importlib.util,os;print(os.path.dirname(importlib.util.find_spec('torch').origin))"
  OUTPUT_VARIABLE torch_folder OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)

# ---- the operator table -----------------------------------------------------------------------------------------
file(GLOB aten_tables CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/aten/*.inc)
set(op_table ${CMAKE_BINARY_DIR}/generated/bridge_ops.inc)
add_custom_command(
  OUTPUT ${op_table}
  COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_BINARY_DIR}/generated
  COMMAND ${Python_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/generate_ops.py ${CMAKE_CURRENT_SOURCE_DIR}/aten ${op_table}
  DEPENDS ${CMAKE_CURRENT_LIST_DIR}/generate_ops.py ${aten_tables}
  COMMENT "Operator table of the bridge" VERBATIM)

# The objects do not wait for libtn: both compile side by side.
file(GLOB bridge_sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/*.cpp)
add_library(tn_bridge OBJECT ${bridge_sources} ${op_table})
target_include_directories(tn_bridge SYSTEM PRIVATE ${torch_folder}/include
                                                    ${torch_folder}/include/torch/csrc/api/include)
target_include_directories(tn_bridge PRIVATE ${CMAKE_CURRENT_LIST_DIR} ${CMAKE_SOURCE_DIR}/include
                                             ${CMAKE_BINARY_DIR}/generated)
target_link_libraries(tn_bridge PRIVATE Python::Module)
target_compile_options(tn_bridge PRIVATE -Wall -Wextra -Wno-unused-parameter -Wno-missing-field-initializers)
# The torch headers that nearly every unit needs; parsing them takes longer than compiling any unit.
target_precompile_headers(tn_bridge PRIVATE <ATen/core/Tensor.h> <ATen/core/dispatch/Dispatcher.h> <torch/library.h>)
# torch checks every access to a boxed value in its headers' debug assertions, which NDEBUG turns off; the bridge has no
# assertions of its own.
target_compile_definitions(tn_bridge PRIVATE _GLIBCXX_USE_CXX11_ABI=1 NDEBUG)

set(bridge_package ${CMAKE_BINARY_DIR}/python/torch_neuronx)
Python_add_library(_C MODULE WITH_SOABI $<TARGET_OBJECTS:tn_bridge>)
target_link_directories(_C PRIVATE ${torch_folder}/lib)
target_link_libraries(_C PRIVATE tn torch_cpu c10 torch_python)
# torch loads its own libraries before this module, so only libtn needs to be found beside it.
set_target_properties(_C PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${bridge_package}
                                           BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "$ORIGIN")

# ---- the package beside it: links to the sources, so that an edit needs no build -----------------------------
file(GLOB package_entries CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/python/torch_neuronx/*)
file(MAKE_DIRECTORY ${bridge_package})
foreach(entry ${package_entries})
  get_filename_component(name ${entry} NAME)
  if(NOT name STREQUAL "__pycache__")
    file(CREATE_LINK ${entry} ${bridge_package}/${name} SYMBOLIC)
  endif()
endforeach()
set(dist_info ${CMAKE_BINARY_DIR}/python/torch_neuronx-${PROJECT_VERSION}.dist-info)
file(WRITE ${dist_info}/METADATA "Metadata-Version: 2.1\nName: torch-neuronx\nVersion: ${PROJECT_VERSION}\n")
file(WRITE ${dist_info}/entry_points.txt
     "[torch.backends]\ntorch_neuronx = torch_neuronx:_autoload\n\n[torch_dynamo_backends]\nneuron = torch_neuronx.neuron_dynamo_backend.backend:neuron_backend\n")
