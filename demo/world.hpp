#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <boost/asio/thread_pool.hpp>

#include "common/core/async.hpp"
#include "narrator.hpp"
#include "support/git_server.hpp"

namespace gitops::demo {

// The peers of the programs in the scene: a cluster, Argo CD with its applications, and an event
// source, with the operations of the scene. Functions may throw.
struct World {
  std::string description;  // a sentence that names the real programs
  std::string kubernetes_url;
  std::string argocd_url;  // http://host:port
  std::string argocd_token;
  std::string kubeconfig;     // file
  std::string app_namespace;  // of Applications
  std::string kubectl;        // path of the program; empty when there is none
  std::string database;       // for the control plane, as of test::ControlPlaneProcess

  // Creates an application of the repository and its path ".", which deploys into kDestination.
  std::function<Task<>(std::string name, std::string repository)> create_app;
  // Syncs an application with Git, with pruning. Returns when the sync has succeeded at
  // `revision`.
  std::function<Task<>(std::string name, std::string revision)> sync;
  // Deletes an application and its resources.
  std::function<Task<>(std::string name)> delete_app;
  // Returns the value of a key of a Secret in the namespace of Applications; empty when it is
  // absent.
  std::function<Task<std::string>(std::string name, std::string key)> secret;

  // Number of reads to which argocd-server has responded.
  struct Reads {
    std::size_t trees = 0;
    std::size_t managed = 0;
    std::size_t revisions = 0;
  };
  std::function<Task<Reads>()> reads;

  // The event source: its port on 127.0.0.1, and the bodies of the webhooks that became events,
  // oldest first.
  std::uint16_t event_source_port = 0;
  std::function<std::vector<std::string>()> events;
  std::function<Task<>()> stop;
};

inline constexpr const char* kAppName = "guestbook";
inline constexpr const char* kDestination = "demo";
inline constexpr const char* kWebhook = "/webhooks/argo/github";

// Creates the world from the doubles of tests/doubles, on this loop.
Task<World> embedded_world(const test::GitServer& git);

// Creates the world from the real programs. The call starts them in about ten seconds and must come
// from the main thread. Their later operations block and run on the pool.
std::function<Task<World>(asio::thread_pool&, const test::GitServer&)> real_world(
    Narrator& narrator);

}  // namespace gitops::demo
