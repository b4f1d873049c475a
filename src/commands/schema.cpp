#include "config/schema.h"

#include "cli/console.h"

namespace nlaunch::commands {

using namespace cli;
using namespace session;

}  // namespace nlaunch::commands
