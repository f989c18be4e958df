// Compiles Asio's sources once; every other file only declares them.
#include <boost/asio/impl/src.hpp>
#include <boost/asio/ssl/impl/src.hpp>
