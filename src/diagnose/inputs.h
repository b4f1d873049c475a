#pragma once
#include <functional>

#include "diagnose/diagnose.h"
#include "sys/byte_source.h"

namespace nlaunch::diagnose {

/// Opens what the paths name, one after the other: files, the files of directories, the members of archives.
/// `read` receives each with its name and fills in what it saw.
void for_each_input(const std::vector<std::string>& paths, const Options& options, Diagnosis& diagnosis,
                    const std::function<void(Input& input, sys::ByteSource& bytes)>& read);

}  // namespace nlaunch::diagnose
