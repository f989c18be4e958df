# The kinds of target of this project. Sources are listed explicitly, never globbed.

# gitops_library(core [SMALL] SOURCES a.cpp ... DEPENDS gitops::x pkg::y ...)
# A static library target gitops_<name> with the alias gitops::<name>; include root is libs/.
# SMALL: a release optimises it for size, half of that at -O3. For what does not run thousands of times a second.
function(gitops_library name)
  cmake_parse_arguments(ARG "SMALL" "PRECOMPILED" "SOURCES;DEPENDS" ${ARGN})
  if(NOT ARG_PRECOMPILED)
    set(ARG_PRECOMPILED programs)
  endif()
  add_library(gitops_${name} STATIC ${ARG_SOURCES})
  add_library(gitops::${name} ALIAS gitops_${name})
  target_include_directories(gitops_${name} PUBLIC ${PROJECT_SOURCE_DIR}/libs)
  target_link_libraries(gitops_${name} PRIVATE gitops::compiler PUBLIC ${ARG_DEPENDS})
  gitops_precompile(gitops_${name} ${ARG_PRECOMPILED})
  if(ARG_SMALL AND CMAKE_BUILD_TYPE STREQUAL "Release")
    target_compile_options(gitops_${name} PRIVATE -Oz)
  endif()
endfunction()

# gitops_small_sources(config.cpp ...)
# SMALL for single sources of this folder.
function(gitops_small_sources)
  if(CMAKE_BUILD_TYPE STREQUAL "Release")
    set_source_files_properties(${ARGN} PROPERTIES COMPILE_OPTIONS -Oz)
  endif()
endfunction()

# gitops_app_folder(event-reporter ledger [SMALL] SOURCES ... DEPENDS ...)
# One folder of an app as the library gitops::<app>_<folder>. Sources are named from the folder on.
function(gitops_app_folder app folder)
  cmake_parse_arguments(ARG "SMALL" "" "SOURCES;DEPENDS" ${ARGN})
  string(REPLACE "-" "_" library ${app}_${folder})
  list(TRANSFORM ARG_SOURCES PREPEND ${folder}/)
  set(small)
  if(ARG_SMALL)
    set(small SMALL)
  endif()
  gitops_library(${library} ${small} SOURCES ${ARG_SOURCES} DEPENDS ${ARG_DEPENDS})
  target_include_directories(gitops_${library} PUBLIC ${PROJECT_SOURCE_DIR}/apps)
endfunction()

# gitops_app(event-reporter [MIMALLOC] [SMALL] SOURCES ... DEPENDS ...)
# Everything but main.cpp becomes the library gitops::<name>_app, which the tests link too.
# MIMALLOC: a release allocates by mimalloc; docs/adr/0009-allocator-of-the-router.md.
function(gitops_app name)
  cmake_parse_arguments(ARG "MIMALLOC;SMALL" "" "SOURCES;DEPENDS" ${ARGN})
  string(REPLACE "-" "_" library ${name}_app)
  set(small)
  if(ARG_SMALL)
    set(small SMALL)
  endif()
  gitops_library(${library} ${small} SOURCES ${ARG_SOURCES} DEPENDS ${ARG_DEPENDS})
  target_include_directories(gitops_${library} PUBLIC ${PROJECT_SOURCE_DIR}/apps)
  add_executable(${name} main.cpp)
  gitops_archives(${name} ${GITOPS_ARCHIVES})
  target_link_libraries(${name} PRIVATE gitops::compiler gitops::${library})
  if(ARG_MIMALLOC)
    gitops_mimalloc(${name})
  endif()
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
  set_property(GLOBAL APPEND PROPERTY GITOPS_PROGRAMS ${name})
endfunction()

# gitops_archives(event-reporter yaml-cpp z)
# A release of this program has these libraries of Debian as a part of it, so of each only what is called.
set(GITOPS_ARCHIVES yaml-cpp deflate z)
function(gitops_archives name)
  if(CMAKE_BUILD_TYPE STREQUAL "Release")
    foreach(library ${ARGN})
      find_library(GITOPS_ARCHIVE_${library} NAMES lib${library}.a REQUIRED)
      target_link_libraries(${name} PRIVATE ${GITOPS_ARCHIVE_${library}})
    endforeach()
  endif()
endfunction()

# gitops_mimalloc(event-reporter)
# A release of this program allocates by mimalloc.
function(gitops_mimalloc name)
  if(CMAKE_BUILD_TYPE STREQUAL "Release")
    # It stands in for malloc, which nothing here refers to by name.
    target_compile_definitions(${name} PRIVATE GITOPS_MIMALLOC)
    target_link_libraries(${name} PRIVATE -Wl,--push-state,--no-as-needed mimalloc -Wl,--pop-state)
  endif()
endfunction()

# gitops_test_library(test_http SOURCES a.cpp ... DEPENDS gitops::x ...)
# What several suites share: a library whose include root is also tests/, and which knows where the
# programs under test are (GITOPS_BIN_DIR).
function(gitops_test_library name)
  gitops_library(${name} PRECOMPILED tests ${ARGN})
  target_include_directories(gitops_${name} PUBLIC ${PROJECT_SOURCE_DIR}/tests)
  target_compile_definitions(gitops_${name} PRIVATE GITOPS_BIN_DIR="${PROJECT_BINARY_DIR}/bin")
endfunction()

# gitops_test(core_test TIER unit [THREADS] [TIMEOUT s] [SHARDS n] [LOCKS x] [LABELS x ...] SOURCES ... DEPENDS ...)
# One gtest binary and one ctest entry, labelled with its tier (lint, unit, component, contract, e2e,
# faults, fuzz, peers, suite). THREADS: several threads meet in it, so ./dev test runs it under
# ThreadSanitizer too; keep what it depends on small. SHARDS: a long binary that ./dev test runs as n
# processes side by side. LOCKS: what of the machine it needs alone, such as a port. LABELS: more
# labels. tests/run.py finds the suites in suites.txt, a line
# "binary|labels|timeout|shards|locks|sources" each.
function(gitops_test name)
  cmake_parse_arguments(ARG "THREADS" "TIER;TIMEOUT;SHARDS;LOCKS" "SOURCES;DEPENDS;LABELS" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 240)
  endif()
  if(NOT ARG_SHARDS)
    set(ARG_SHARDS 1)
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE gitops::compiler ${ARG_DEPENDS} GTest::gmock GTest::gtest_main)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_compile_definitions(${name} PRIVATE GITOPS_SOURCE_DIR="${PROJECT_SOURCE_DIR}" GITOPS_BIN_DIR="${PROJECT_BINARY_DIR}/bin")
  if(NOT ARG_TIER STREQUAL "lint")  # the probes of the compiler know nothing of ours
    gitops_precompile(${name} tests)
  endif()
  add_test(NAME ${name} COMMAND ${name})
  set(labels ${ARG_TIER} ${ARG_LABELS})
  if(ARG_THREADS)
    list(APPEND labels threads)
  endif()
  list(TRANSFORM ARG_SOURCES PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
  string(REPLACE ";" "," sources "${ARG_SOURCES}")
  string(REPLACE ";" "," suite
    "${CMAKE_CURRENT_BINARY_DIR}/${name}|${labels}|${ARG_TIMEOUT}|${ARG_SHARDS}|${ARG_LOCKS}|${sources}")
  set_property(GLOBAL APPEND PROPERTY GITOPS_SUITES "${suite}")
  set_tests_properties(${name} PROPERTIES LABELS "${labels}" TIMEOUT ${ARG_TIMEOUT})
endfunction()
