# Finds every third-party package and gives each one a target of the form pkg::name.
# Each is a Debian 12 package; ./dev installs them.

find_package(Threads REQUIRED)
find_package(OpenSSL 3.0 REQUIRED)
find_package(ZLIB REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(libdeflate REQUIRED IMPORTED_TARGET GLOBAL libdeflate>=1.10)
pkg_check_modules(libgit2 REQUIRED IMPORTED_TARGET GLOBAL libgit2>=1.5)
find_package(Boost 1.81 REQUIRED)
find_package(nlohmann_json 3.11 REQUIRED)
find_package(SQLite3 3.40 REQUIRED)  # SQLite::SQLite3
find_package(simdjson REQUIRED)
find_package(Snappy 1.1 REQUIRED)  # Snappy::snappy
find_package(spdlog REQUIRED)
find_package(yaml-cpp REQUIRED)
find_package(prometheus-cpp REQUIRED)
if(CMAKE_BUILD_TYPE STREQUAL "Release")
  find_package(mimalloc 2.0 REQUIRED)
endif()
if(GITOPS_TESTS)
  find_package(GTest REQUIRED)
endif()

if(NOT TARGET yaml-cpp::yaml-cpp)
  add_library(yaml-cpp::yaml-cpp ALIAS yaml-cpp)
endif()
