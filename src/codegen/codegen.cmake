# libtn_codegen.so: kernel programs to machine code through LLVM's C API. LLVM is linked statically and hidden; libtn
# opens the plugin with dlopen at first need and runs without it (TN_LLVM=OFF, or no LLVM found).
set(tn_llvm_config "")
if(TN_LLVM STREQUAL "AUTO" AND Python_EXECUTABLE)
  execute_process(COMMAND ${Python_EXECUTABLE} -m mlc_llvm_static.config --prefix
                  OUTPUT_VARIABLE tn_llvm_prefix OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE tn_failed)
  if(NOT tn_failed AND EXISTS ${tn_llvm_prefix}/bin/llvm-config)
    set(tn_llvm_config ${tn_llvm_prefix}/bin/llvm-config)
  endif()
endif()
if(NOT tn_llvm_config AND NOT TN_LLVM STREQUAL "OFF")
  find_program(TN_LLVM_CONFIG NAMES llvm-config llvm-config-20 llvm-config-19 llvm-config-18)
  if(TN_LLVM_CONFIG)
    execute_process(COMMAND ${TN_LLVM_CONFIG} --version OUTPUT_VARIABLE tn_llvm_version
                    OUTPUT_STRIP_TRAILING_WHITESPACE)
    if(tn_llvm_version VERSION_GREATER_EQUAL 18)
      set(tn_llvm_config ${TN_LLVM_CONFIG})
    endif()
  endif()
endif()
if(NOT tn_llvm_config)
  if(TN_LLVM STREQUAL "SYSTEM")
    message(FATAL_ERROR "TN_LLVM=SYSTEM: no llvm-config of version 18 or newer was found")
  endif()
  message(STATUS "Code generation: off (kernel programs are interpreted)")
  return()
endif()

string(TOLOWER ${CMAKE_SYSTEM_PROCESSOR} tn_llvm_cpu)
if(tn_llvm_cpu MATCHES "x86_64|amd64")
  set(tn_llvm_target x86codegen x86desc x86info)
else()
  message(STATUS "Code generation: off (no loader for ${CMAKE_SYSTEM_PROCESSOR} yet)")
  return()
endif()
function(tn_llvm_query out)
  execute_process(COMMAND ${tn_llvm_config} ${ARGN} OUTPUT_VARIABLE text OUTPUT_STRIP_TRAILING_WHITESPACE
                  RESULT_VARIABLE failed ERROR_QUIET)
  string(REPLACE "\n" " " text "${text}")
  separate_arguments(text UNIX_COMMAND "${text}")
  set(${out} ${text} PARENT_SCOPE)
endfunction()
tn_llvm_query(tn_llvm_libs --link-static --libs core analysis target ${tn_llvm_target})
if(NOT tn_llvm_libs)  # a distribution without static archives
  tn_llvm_query(tn_llvm_libs --link-shared --libs)
endif()
tn_llvm_query(tn_llvm_system_libs --link-static --system-libs)
tn_llvm_query(tn_llvm_libdir --libdir)
tn_llvm_query(tn_llvm_includes --includedir)

file(GLOB codegen_sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/llvm/*.c)
# The recipes are data for the emitter, so the plugin has its own copy and needs nothing of libtn.
add_library(tn_codegen MODULE ${codegen_sources} ${CMAKE_CURRENT_LIST_DIR}/../base/math_recipes.c)
set(tn_emit_base ${CMAKE_CURRENT_LIST_DIR}/../base)
set(tn_emit_inputs ${codegen_sources} ${CMAKE_CURRENT_LIST_DIR}/llvm/emit.h ${CMAKE_CURRENT_LIST_DIR}/codegen_api.h
                   ${CMAKE_CURRENT_LIST_DIR}/math_calls.h ${CMAKE_SOURCE_DIR}/include/tn/kernel_program.h
                   ${CMAKE_SOURCE_DIR}/include/tn/ops.inc ${tn_emit_base}/math_recipes.c ${tn_emit_base}/math_recipes.h
                   ${tn_emit_base}/math_recipes.inc ${tn_emit_base}/math_coefficients.inc)
add_custom_command(OUTPUT ${CMAKE_BINARY_DIR}/generated/tn_emit_sources.h
                   COMMAND ${CMAKE_COMMAND} -DOUT=${CMAKE_BINARY_DIR}/generated/tn_emit_sources.h
                           -P ${CMAKE_CURRENT_LIST_DIR}/source_hash.cmake ${tn_emit_inputs}
                   DEPENDS ${tn_emit_inputs} ${CMAKE_CURRENT_LIST_DIR}/source_hash.cmake VERBATIM)
target_sources(tn_codegen PRIVATE ${CMAKE_BINARY_DIR}/generated/tn_emit_sources.h)
target_link_libraries(tn_codegen PRIVATE tn_flags)
target_include_directories(tn_codegen SYSTEM PRIVATE ${tn_llvm_includes})
target_compile_options(tn_codegen PRIVATE -fvisibility=hidden -ffunction-sections -fdata-sections)
target_link_directories(tn_codegen PRIVATE ${tn_llvm_libdir})
target_link_options(tn_codegen PRIVATE -Wl,--exclude-libs,ALL -Wl,--gc-sections -Wl,-s -Wl,-Bsymbolic
                                       -Wl,--no-undefined)
target_link_libraries(tn_codegen PRIVATE ${tn_llvm_libs} ${tn_llvm_system_libs})
set_target_properties(tn_codegen PROPERTIES LINKER_LANGUAGE CXX PREFIX "lib" OUTPUT_NAME tn_codegen
                                            LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/python/torch_neuronx)
