// The one translation unit that holds Boost.Process v2 itself (BOOST_PROCESS_V2_SEPARATE_COMPILATION).

// All but Boost's way to close what a child must not inherit: it wants Linux 5.9 and glibc 2.34. The only
// caller, spawn(), has marked every descriptor by then, and exec closes them.
#define BOOST_PROCESS_V2_POSIX_DETAIL_CLOSE_HANDLES_IPP
#include <boost/process/v2/src.hpp>

BOOST_PROCESS_V2_BEGIN_NAMESPACE
namespace posix::detail {

void close_all(const std::vector<int>&, error_code&) {}

}  // namespace posix::detail
BOOST_PROCESS_V2_END_NAMESPACE
