// Connects to a scheduler, or to who answers like one.
#include "tools/scheduler_question.h"

#include "common/protocol/locate/scheduler_locator.h"

namespace hdps {

SchedulerConnection::SchedulerConnection(std::string address, Connections connections,
                                         AskedPeer asked)
    : address_(std::move(address)),
      connections_(std::move(connections)),
      asked_(std::move(asked)),
      clock_(NewSystemClock()),
      transport_(NewZmqTransport(connections_.Options(NewPeerName()))) {}

Result<std::unique_ptr<SchedulerConnection>> SchedulerConnection::Open(std::string address,
                                                                       Connections connections,
                                                                       AskedPeer asked) {
  HDPS_RETURN_IF_ERROR(CheckSchedulerGiven(address));
  if (address.starts_with(kFileScheme)) {
    HDPS_ASSIGN_OR_RETURN(const auto locator, LocateScheduler(address, connections.may_leave()));
    HDPS_ASSIGN_OR_RETURN(address, locator->Newest());
  }
  std::unique_ptr<SchedulerConnection> connection(
      new SchedulerConnection(std::move(address), std::move(connections), std::move(asked)));
  HDPS_RETURN_IF_ERROR(
      connection->transport_->Connect(connection->asked_.peer, connection->address_));
  return connection;
}

}  // namespace hdps
