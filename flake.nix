# Nix flake: `nix run github:mcpd-project/mcpd -- --help` builds mcpd and runs it.
#
# Not tried: Nix was not at hand. It needs a nixpkgs with Rust 1.95 or newer.
{
  description = "Directory of executable scripts as an MCP server";

  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-unstable";

  outputs =
    { self, nixpkgs }:
    let
      systems = [
        "x86_64-linux"
        "aarch64-linux"
        "x86_64-darwin"
        "aarch64-darwin"
      ];
      forEachSystem = build: nixpkgs.lib.genAttrs systems (system: build nixpkgs.legacyPackages.${system});
    in
    {
      packages = forEachSystem (pkgs: {
        default = pkgs.rustPlatform.buildRustPackage {
          pname = "mcpd";
          version = (pkgs.lib.importTOML ./Cargo.toml).workspace.package.version;
          src = self;
          cargoLock.lockFile = ./Cargo.lock;
          buildType = "dist";
          cargoBuildFlags = [
            "--package"
            "mcpd-cli"
          ];
          # They install clients and servers of others, for which a build has no network.
          doCheck = false;
          meta = {
            description = "Directory of executable scripts as an MCP server";
            license = with pkgs.lib.licenses; [
              mit
              asl20
            ];
            mainProgram = "mcpd";
          };
        };
      });
    };
}
