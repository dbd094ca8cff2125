# cmake -DOUT=<header> -P source_hash.cmake <files..>: one hash of all files, as a C string. It is part of the key of
# objects on disk, so that code of another emitter or other recipes is never used.
set(all "")
set(i 4)  # behind: cmake -DOUT=.. -P script
while(i LESS CMAKE_ARGC)
  file(SHA256 ${CMAKE_ARGV${i}} hash)
  string(APPEND all ${hash})
  math(EXPR i "${i} + 1")
endwhile()
string(SHA256 hash "${all}")
string(SUBSTRING ${hash} 0 16 hash)
file(CONFIGURE OUTPUT ${OUT} CONTENT "#define TN_EMIT_SOURCES \"@hash@\"\n" @ONLY)
