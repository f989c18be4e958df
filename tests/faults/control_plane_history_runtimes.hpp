#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "common/core/async.hpp"
#include "common/core/metrics.hpp"
#include "common/core/task_group.hpp"
#include "common/http/client.hpp"
#include "common/net/resolve.hpp"
#include "faults/control_plane_history_harness.hpp"
#include "faults/control_plane_history_model.hpp"

namespace gitops::test {

// Runtimes without a reporter, which post events of Applications, of their resources and of Rollouts to the intake:
// changes, deletions, objects that are recreated under another uid, repeats, and events that overtake each other. Loop
// thread; call stop() first.
class ScriptedRuntimes {
 public:
  static constexpr std::size_t kRuntimes = 6;
  static constexpr std::size_t kObjects = 9;  // of each runtime, of three kinds
  static constexpr std::size_t kSenders = 3;  // of each runtime

  ScriptedRuntimes(const Executor& executor, ControlPlaneHistoryHarness& control_plane,
                   std::uint64_t seed);

  // Registers the runtimes and begins to post.
  void start();
  // Wait for so many more attempts or acknowledgements, or for one more 503; false after a time limit.
  Task<bool> wait_for_attempts(std::size_t count);
  Task<bool> wait_for_acknowledgements(std::size_t count);
  Task<bool> wait_for_unavailable();
  // Stops posting, and waits until no request is in flight.
  Task<> pause();
  void resume();
  // Posts the newest event of each object until it is acknowledged. While it is paused.
  Task<bool> post_newest();
  Task<> stop();
  // Makes the events so large that the database has to grow.
  void set_large(bool is_large) { is_large_ = is_large; }

  // Reads what the control plane has, in the model's form.
  [[nodiscard]] std::vector<StoredObject> stored() const;
  // The names of the Applications that exist, by runtime.
  [[nodiscard]] std::map<std::string, std::vector<std::string>> live_applications() const;

  ControlPlaneHistoryModel model;
  std::map<int, std::size_t> statuses;  // of all attempts; 0: no answer
  std::string refusal;                  // body of a status that no good event may get

 private:
  enum class Kind { application, resource, rollout };
  struct Object {
    Kind kind = Kind::application;
    std::string name = {};
    std::string owner = {};  // uid of the Application, for a resource
    std::string uid = {};
    std::string earlier_uid = {};  // empty: none
    std::uint64_t sequence = 0;
    bool is_live = false;
    bool is_newest_acknowledged = false;
    std::deque<PostedEvent> last = {};  // the newest at the end
  };
  struct Runtime {
    std::string name = {};
    std::string token = {};
    std::vector<Object> objects = {};
  };

  std::size_t pick(std::size_t n) { return random_() % n; }
  static std::string identity(const Runtime& runtime, const Object& object);
  Task<> send(Runtime& runtime);
  // Returns the events that a sender posts next, in their order.
  std::vector<PostedEvent> next_events(const Runtime& runtime, Object& object);
  PostedEvent next_event(const Runtime& runtime, Object& object);
  PostedEvent deletion_of_earlier_uid(const Runtime& runtime, Object& object);
  Task<bool> post(Runtime& runtime, Object& object, const PostedEvent& event);
  [[nodiscard]] static std::string body_of(const Object& object, const PostedEvent& event);
  Task<bool> wait_for(const std::size_t& counter, std::size_t count);

  ControlPlaneHistoryHarness& control_plane_;
  std::mt19937_64 random_;
  Metrics metrics_;
  net::Resolver names_{metrics_};
  http::Client client_;
  std::deque<Runtime> runtimes_;
  std::size_t contents_ = 0;
  std::size_t attempts_ = 0;
  std::size_t acknowledgements_ = 0;
  std::size_t in_flight_ = 0;
  bool is_large_ = false;
  bool is_paused_ = false;
  bool stops_ = false;
  Event changed_;
  TaskGroup tasks_;
};

}  // namespace gitops::test
