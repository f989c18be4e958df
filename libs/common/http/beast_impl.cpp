// The one build of Beast's sources; parser.cpp only declares what it uses of them.
#include <boost/beast/src.hpp>
