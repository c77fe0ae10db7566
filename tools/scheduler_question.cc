// Connects to a scheduler.
#include "tools/scheduler_question.h"

namespace hdps {

SchedulerConnection::SchedulerConnection(std::string address, Connections connections)
    : address_(std::move(address)),
      connections_(std::move(connections)),
      clock_(NewSystemClock()),
      transport_(NewZmqTransport(connections_.Options(NewPeerName()))) {}

Result<std::unique_ptr<SchedulerConnection>> SchedulerConnection::Open(std::string address,
                                                                       Connections connections) {
  HDPS_RETURN_IF_ERROR(CheckSchedulerGiven(address));
  std::unique_ptr<SchedulerConnection> connection(
      new SchedulerConnection(std::move(address), std::move(connections)));
  HDPS_RETURN_IF_ERROR(connection->transport_->Connect(kSchedulerPeer, connection->address_));
  return connection;
}

}  // namespace hdps
