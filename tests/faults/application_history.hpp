#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "doubles/fake_argocd.hpp"
#include "faults/history.hpp"

namespace gitops::test {

// A history of mode `app`: Applications, some below others, with resources in two namespaces.
class ApplicationHistory : public History {
 public:
  static constexpr std::size_t kApplications = 12;
  static constexpr std::size_t kParents = 3;    // the first ones may have applications below them
  static constexpr std::size_t kResources = 6;  // most of one application

  ApplicationHistory(const Executor& executor, std::uint64_t seed, std::size_t replicas);

  void change() override;
  void change_all() override;
  void create_all() override;
  // Moves every application and every resource to its other sync state; the next call moves them
  // back, like a commit and its revert.
  void turn_all();

  FakeArgoCd argocd;

 protected:
  Kinds own_faults() override;
  Task<> prepare() override;
  [[nodiscard]] ReceivedEvent read(const FakePlatform::Report& report) const override;
  void make_milestones() override;
  void finish_deletions() override;
  std::function<void()> back_up() override;
  [[nodiscard]] std::size_t events_of(std::size_t shard, std::size_t replicas) const override;
  [[nodiscard]] std::size_t events_of_change() const override { return 3 + kResources; }

 private:
  using Place = std::pair<std::string, std::string>;  // namespace and name
  struct Resource {
    std::string content;
    std::string sync;
    std::string health;
    std::size_t version = 0;
  };
  struct App {
    std::string name;
    std::string uid;
    std::string parent;  // name of the application above it; empty: none
    std::string content;
    std::string revision = "r0";
    std::string sync = "Synced";
    std::string health = "Healthy";
    std::string phase = "Succeeded";
    std::string condition = {};  // type of its only one; empty: none
    std::map<Place, Resource> resources = {};
    bool finalizer = false;
    bool deleting = false;  // the finalizer holds it
    bool compared = true;   // false: Argo CD could not compare it, and knows none of its resources
  };
  static constexpr const char* kNamespace = "argocd";

  Place pick_place();
  // Alternates between two known states.
  void turn(App& app);
  void create(const std::string& name);
  void remove_in_two_steps(App& app);
  // Removes the application, whatever held it.
  void end(const std::string& name);
  void change_resource(App& app, const Place& place);
  // Writes the application's state: Argo CD's answers about it, then the Application.
  void write(App& app);
  void write_answers(const App& app);
  [[nodiscard]] nlohmann::json application(const App& app) const;

  // -- the truth --
  void record(const App& app);
  void record_resource(const App& app, const Place& place);
  void record_children(const std::string& parent);
  [[nodiscard]] static std::string identity(const App& app);
  [[nodiscard]] static std::string identity(const App& app, const Place& place);
  [[nodiscard]] std::string errors(const App& app) const;
  [[nodiscard]] std::string message(const App& app) const;

  // -- faults --
  Task<> argocd_burst();
  Task<> argocd_not_found();
  Task<> not_compared();
  Task<> gap();

  std::map<std::string, App> apps_;  // by name
  std::size_t incarnations_ = 0;
  std::size_t versions_ = 0;
};

}  // namespace gitops::test
