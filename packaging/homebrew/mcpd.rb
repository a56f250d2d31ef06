# Homebrew formula, a template: `packaging/homebrew/render` puts the version and the sums of a
# release in place of the words between @.
#
# The tests render it. Neither the formula nor an archive for macOS was tried with Homebrew.
class Mcpd < Formula
  desc "Directory of executable scripts as an MCP server"
  homepage "https://github.com/mcpd-project/mcpd"
  version "@VERSION@"
  license any_of: ["MIT", "Apache-2.0"]

  on_macos do
    on_arm do
      url "https://github.com/mcpd-project/mcpd/releases/download/v@VERSION@/mcpd-@VERSION@-aarch64-apple-darwin.tar.gz"
      sha256 "@aarch64-apple-darwin@"
    end
    on_intel do
      url "https://github.com/mcpd-project/mcpd/releases/download/v@VERSION@/mcpd-@VERSION@-x86_64-apple-darwin.tar.gz"
      sha256 "@x86_64-apple-darwin@"
    end
  end

  # Static, so that they do not depend on the glibc of Homebrew.
  on_linux do
    on_arm do
      url "https://github.com/mcpd-project/mcpd/releases/download/v@VERSION@/mcpd-@VERSION@-aarch64-unknown-linux-musl.tar.gz"
      sha256 "@aarch64-unknown-linux-musl@"
    end
    on_intel do
      url "https://github.com/mcpd-project/mcpd/releases/download/v@VERSION@/mcpd-@VERSION@-x86_64-unknown-linux-musl.tar.gz"
      sha256 "@x86_64-unknown-linux-musl@"
    end
  end

  def install
    bin.install "mcpd"
    doc.install "README.md", "LICENSE-APACHE", "LICENSE-MIT", "THIRD-PARTY-LICENSES.txt"
    man1.install Dir["share/man/man1/*"]
    bash_completion.install Dir["share/bash-completion/completions/*"]
    fish_completion.install Dir["share/fish/vendor_completions.d/*"]
    zsh_completion.install Dir["share/zsh/vendor-completions/*"]
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/mcpd --version")
  end
end
