// Compiles Beast's sources once; parser.cpp only uses their declarations.
#include <boost/beast/src.hpp>
