#pragma once
#include <boost/asio/io_context.hpp>

#include "sys/loop.h"

namespace nlaunch::sys {

/// The asio context of a loop, for those parts of this directory that do asynchronous work on it.
struct LoopAccess {
  static boost::asio::io_context& context(Loop& loop);
};

}  // namespace nlaunch::sys
