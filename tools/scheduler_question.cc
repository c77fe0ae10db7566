// Reads the flags that name a running scheduler, and connects to it.
#include "tools/scheduler_question.h"

#include <gflags/gflags.h>

DEFINE_string(scheduler, "", "Address of the scheduler: tcp://HOST:PORT or ipc://PATH");

namespace hdps {

SchedulerConnection::SchedulerConnection(std::string address, Connections connections)
    : address_(std::move(address)),
      connections_(std::move(connections)),
      clock_(NewSystemClock()),
      transport_(NewZmqTransport(connections_.Options(NewPeerName()))) {}

Result<std::unique_ptr<SchedulerConnection>> SchedulerConnection::Open(std::vector<KeyRole> roles) {
  HDPS_RETURN_IF_ERROR(CheckSchedulerGiven(FLAGS_scheduler));
  HDPS_ASSIGN_OR_RETURN(Connections connections, ReadConnections(std::move(roles)));
  std::unique_ptr<SchedulerConnection> connection(
      new SchedulerConnection(FLAGS_scheduler, std::move(connections)));
  HDPS_RETURN_IF_ERROR(connection->transport_->Connect(kSchedulerPeer, connection->address_));
  return connection;
}

}  // namespace hdps
