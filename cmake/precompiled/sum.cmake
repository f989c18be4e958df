# Writes SUM: a digest of the files that DEPENDENCIES, in make's form, names. ROOT, the checkout, is left out of it. Flags
# are those of the sources that use the header, or clang refuses it.
file(READ ${DEPENDENCIES} text)
string(REGEX REPLACE "^.*\\.pch:" "" text "${text}")
string(REPLACE "\\\n" " " text "${text}")
separate_arguments(files UNIX_COMMAND "${text}")
set(lines "")
foreach(file IN LISTS files)
  file(SHA256 ${file} digest)
  string(REPLACE "${ROOT}/" "" file "${file}")
  string(APPEND lines "${file} ${digest}\n")
endforeach()
string(SHA256 digest "${lines}")
file(WRITE ${SUM} "${digest}\n")
