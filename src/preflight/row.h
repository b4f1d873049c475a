#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/described.h"

namespace nlaunch::preflight {

using nlaunch::name_of;

/// *unknown*: the check could not be carried out. *skip*: it does not apply here, or was not requested.
enum class Status { pass, warn, fail, unknown, skip };
BOOST_DESCRIBE_ENUM(Status, pass, warn, fail, unknown, skip)

enum class Responsible { nobody, user, admin };
BOOST_DESCRIBE_ENUM(Responsible, nobody, user, admin)

std::string_view name_of(Responsible responsible);

/// The result of one check for one subject, for people to read.
struct Row {
  std::string check;  ///< name of the check: "identity", "all_reduce"
  Status status = Status::pass;
  std::string subject;   ///< a rank with its GPU, a role, a group, a limit
  std::string value;     ///< what was found
  std::string expected;  ///< what was expected; may be empty
  std::string fix;       ///< how to fix it; empty unless there is a problem
  Responsible responsible = Responsible::nobody;
  std::vector<std::string> hosts{};  ///< the nodes concerned; empty: none in particular, or the only one
};

Row passed(std::string check, std::string subject, std::string value, std::string expected = "");
Row skipped(std::string check, std::string subject, std::string reason);
Row unknown(std::string check, std::string subject, std::string reason);
/// How to fix a fault, and who can.
struct Remedy {
  std::string fix;
  Responsible responsible = Responsible::user;
};
Row failed(std::string check, std::string subject, std::string value, std::string expected, Remedy remedy);
Row warned(std::string check, std::string subject, std::string value, std::string expected, Remedy remedy);

/// The worst of all rows: fail, then unknown, then warn; *pass* if there are none of these.
Status worst(const std::vector<Row>& rows);

/// Of a GPU, group or node that is slower than expected while another process uses one of its GPUs, that
/// process is the first thing to look at: their `fix` becomes that of the row "gpu-processes".
void explain_by_users(std::vector<Row>& rows);

}  // namespace nlaunch::preflight
