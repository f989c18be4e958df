#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "doubles/fake_platform.hpp"
#include "faults/history_model.hpp"

// How a receiver reads the events of docs/reference/events.md.
namespace gitops::test {

// The identity of an application or of one of its resources: the uid of the application, and kind,
// namespace and name of the object.
std::string identity_of(const std::string& app_uid, const std::string& kind, const std::string& ns,
                        const std::string& name);

// The errors of an event, in any order.
std::string describe_errors(std::vector<std::string> errors);
// The application that an event names as the manager of its object; all empty: none.
std::string describe_manager(const std::string& name, const std::string& ns,
                             const std::string& uid);

// An event of mode `app`. The content of an application is status.content, that of a resource
// data.content.
ReceivedEvent read_application_event(const FakePlatform::Report& report);
// An event of mode `resource`. The content of an object is spec.content.
ReceivedEvent read_resource_event(const FakePlatform::Report& report);

}  // namespace gitops::test
