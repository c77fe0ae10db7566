// Keeps a scheduler that leads no longer from writing and from commanding.
#pragma once

#include <functional>
#include <memory>

#include "common/net/transport.h"
#include "common/platform/file_system.h"

namespace hdps {

// Returns whether this process may write and command at this moment; from any thread.
using MayLead = std::function<bool()>;

// Returns files that are read as `files` and changed only while `may_lead`; kUnavailable after
// that. `files` must outlive the result.
std::unique_ptr<FileSystem> NewFencedFiles(FileSystem& files, MayLead may_lead);

// Returns a transport that drops frames to be sent unless `may_lead`, asked frame by frame.
// `transport` must outlive the result.
std::unique_ptr<Transport> NewFencedTransport(Transport& transport, MayLead may_lead);

}  // namespace hdps
