// The one translation unit that holds Boost.Process v2 itself (BOOST_PROCESS_V2_SEPARATE_COMPILATION).
#include <boost/process/v2/src.hpp>
