# Precompiled headers, for every preset but release: they halve the time of a compile.
#
# CMake's own target_precompile_headers() names them by absolute paths, so ccache would find nothing that another
# checkout compiled. Here the path is relative to the build folder, and NAME.pch.sum, a digest of every file that went
# into the header, is what ccache compares (CCACHE_PCH_EXTSUM, which ./dev sets).

# The functions in a header are compiled once, into NAME.o (-fpch-codegen), instead of in every source that uses them.
# In the tree that runs most tests this one is optimised, since much of their time goes to the standard library and to
# nlohmann/json.

# gitops_precompiled_header(tests gitops_test_support)
# Makes the header cmake/precompiled/<name>.hpp available to gitops_precompile(), compiled as the users of `target` are.
function(gitops_precompiled_header name target)
  if(NOT GITOPS_PRECOMPILE)
    return()
  endif()
  set(header ${PROJECT_SOURCE_DIR}/cmake/precompiled/${name}.hpp)
  set(out ${PROJECT_BINARY_DIR}/precompiled/${name}.pch)
  set(object ${PROJECT_BINARY_DIR}/precompiled/${name}.o)
  string(TOUPPER "${CMAKE_BUILD_TYPE}" type)
  separate_arguments(flags NATIVE_COMMAND "${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_${type}}")
  get_directory_property(options COMPILE_OPTIONS)
  get_directory_property(definitions COMPILE_DEFINITIONS)
  list(TRANSFORM definitions PREPEND -D)
  list(APPEND flags ${CMAKE_CXX23_STANDARD_COMPILE_OPTION} ${options} -fPIC)
  set(level -O0)
  if(GITOPS_SANITIZER MATCHES "address")
    set(level -O1)
  endif()
  set(target_options "$<TARGET_PROPERTY:${target},INTERFACE_COMPILE_OPTIONS>")
  set(target_definitions "$<TARGET_PROPERTY:${target},INTERFACE_COMPILE_DEFINITIONS>")
  set(roots "$<TARGET_PROPERTY:${target},INTERFACE_INCLUDE_DIRECTORIES>")
  add_custom_command(
    OUTPUT ${out} ${out}.sum
    COMMAND ${CMAKE_CXX_COMPILER} ${flags} ${definitions} -fpch-instantiate-templates -fpch-codegen -Xclang -fno-pch-timestamp
      ${target_options} "-D$<JOIN:${target_definitions},;-D>" "-I$<JOIN:${roots},;-I>"
      -x c++-header ${header} -o ${out} -MD -MF ${out}.d -MT ${out}
    COMMAND ${CMAKE_COMMAND} -DROOT=${PROJECT_SOURCE_DIR} -DDEPENDENCIES=${out}.d -DSUM=${out}.sum
      -P ${PROJECT_SOURCE_DIR}/cmake/precompiled/sum.cmake
    DEPENDS ${header} ${PROJECT_SOURCE_DIR}/cmake/precompiled/sum.cmake
    DEPFILE ${out}.d
    COMMAND_EXPAND_LISTS VERBATIM
    COMMENT "Precompiling ${name}.hpp")
  add_custom_command(
    OUTPUT ${object}
    COMMAND ${CMAKE_CXX_COMPILER} ${flags} ${level} -ffunction-sections -c ${out} -o ${object}
    DEPENDS ${out}
    COMMAND_EXPAND_LISTS VERBATIM
    COMMENT "Compiling ${name}.pch")
  add_custom_target(precompiled_${name} DEPENDS ${out} ${out}.sum)
  # What the functions call comes with the target whose headers these are.
  add_library(gitops_precompiled_${name} STATIC ${object})
  set_target_properties(gitops_precompiled_${name} PROPERTIES LINKER_LANGUAGE CXX)
  target_link_libraries(gitops_precompiled_${name} INTERFACE ${target})
  # Without the functions that nobody calls: some call what the standard library does not export.
  target_link_options(gitops_precompiled_${name} INTERFACE -Wl,--gc-sections)
endfunction()

# gitops_precompile(gitops_http programs)
# Compiles a target of this folder with a header of gitops_precompiled_header().
function(gitops_precompile target name)
  if(NOT GITOPS_PRECOMPILE)
    return()
  endif()
  target_compile_options(${target} PRIVATE "SHELL:-Xclang -include-pch -Xclang precompiled/${name}.pch")
  # For the order alone: an object depends on each header in it anyway.
  add_dependencies(${target} precompiled_${name})
  target_link_libraries(${target} PRIVATE gitops_precompiled_${name})
endfunction()
