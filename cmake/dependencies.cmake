# Finds every third-party package and gives each one a target of the form pkg::name.
# Each is a Debian 12 package; ./dev installs them.

find_package(Threads REQUIRED)
find_package(OpenSSL 3.0 REQUIRED)
find_package(ZLIB REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(libdeflate REQUIRED IMPORTED_TARGET GLOBAL libdeflate>=1.10)
pkg_check_modules(libargon2 REQUIRED IMPORTED_TARGET GLOBAL libargon2)
pkg_check_modules(libpq REQUIRED IMPORTED_TARGET GLOBAL libpq>=14)
pkg_check_modules(libzstd REQUIRED IMPORTED_TARGET GLOBAL libzstd>=1.5)
# libgit2 from its archive, with the few parts of its libraries that remain: app-proxy/git/transport.cpp takes the place of its
# HTTP, TLS and SSH, so neither mbedTLS, libssh2 nor Kerberos comes along.
pkg_check_modules(libgit2 REQUIRED libgit2>=1.5)
add_library(libgit2 INTERFACE)
foreach(name git2 mbedcrypto http_parser pcre2-8)
  find_library(GITOPS_ARCHIVE_${name} NAMES lib${name}.a REQUIRED)
  target_link_libraries(libgit2 INTERFACE ${GITOPS_ARCHIVE_${name}})
endforeach()
target_include_directories(libgit2 SYSTEM INTERFACE ${libgit2_INCLUDE_DIRS})
file(STRINGS ${libgit2_INCLUDEDIR}/git2/common.h limits REGEX GIT_OPT_SET_PACK_MAX_OBJECT_SIZE)
if(NOT limits)
  message(FATAL_ERROR "libgit2-dev lacks Debian's security update 1.5.1+ds-1+deb12u2, which limits the objects of a pack: "
    "add bookworm-security to apt's sources (https://www.debian.org/security/).")
endif()
find_package(Boost 1.81 REQUIRED)
find_package(nlohmann_json 3.11 REQUIRED)
find_package(SQLite3 3.40 REQUIRED)  # SQLite::SQLite3
find_package(simdjson REQUIRED)
find_package(Snappy 1.1 REQUIRED)  # Snappy::snappy
find_package(yaml-cpp REQUIRED)
find_package(prometheus-cpp REQUIRED)
find_package(spdlog 1.10 REQUIRED)  # its headers and those of fmt: its targets would bring shared libraries
if(CMAKE_BUILD_TYPE STREQUAL "Release")
  find_package(mimalloc 2.0 REQUIRED)
endif()
if(GITOPS_TESTS)
  find_package(GTest REQUIRED)
endif()

if(NOT TARGET yaml-cpp::yaml-cpp)
  add_library(yaml-cpp::yaml-cpp ALIAS yaml-cpp)
endif()
