# The command-line tool tn, at the root of the build folder. Every src/tool/*.c is part of it;
# where it finds libtn once installed is in cmake/install.cmake.
file(GLOB tool_sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/*.c)
add_executable(tn_tool ${tool_sources})
target_link_libraries(tn_tool PRIVATE tn tn_flags m)
set_target_properties(tn_tool PROPERTIES
  OUTPUT_NAME tn RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR} BUILD_RPATH "$ORIGIN/python/torch_neuronx")
