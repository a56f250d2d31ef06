//! Cursors of paged lists. A cursor is the key of the last entry sent, so it needs no state,
//! stays valid across restarts, and skips or repeats nothing when entries come and go. It grants
//! no rights, hence it is neither secret nor signed.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use mcpd_protocol::jsonrpc::ErrorObject;

/// Version of the layout: a new layout gets a new number, so that an old cursor is rejected
/// instead of misread.
const VERSION: u8 = 1;

/// Encodes the cursor after the entry `key` of the list `kind`.
pub(crate) fn encode(kind: u8, key: &str) -> String {
    URL_SAFE_NO_PAD.encode([&[VERSION, kind], key.as_bytes()].concat())
}

/// Decodes the key in a cursor of the list `kind`.
///
/// # Errors
///
/// `-32602` for anything that [`encode`] does not return.
pub(crate) fn decode(kind: u8, cursor: &str) -> Result<String, ErrorObject> {
    URL_SAFE_NO_PAD
        .decode(cursor)
        .ok()
        .and_then(|bytes| {
            let key = bytes.strip_prefix(&[VERSION, kind])?;
            String::from_utf8(key.to_vec()).ok()
        })
        .ok_or_else(|| ErrorObject::invalid_params("unknown cursor"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursor_holds_any_key() {
        for key in ["", "math/add", "größe", "mcpd://a/state"] {
            assert_eq!(decode(b't', &encode(b't', key)).unwrap(), key);
        }
    }

    #[test]
    fn other_text_is_no_cursor() {
        let of_another_list = encode(b'p', "math/add");
        let of_another_version = URL_SAFE_NO_PAD.encode(b"\x02tmath");
        let not_utf8 = URL_SAFE_NO_PAD.encode(b"\x01t\xff");
        let padded = format!("{}=", encode(b't', "ab"));
        let others = [&of_another_list, &of_another_version, &not_utf8, &padded];
        for cursor in others
            .into_iter()
            .map(String::as_str)
            .chain(["", "1", "math/add"])
        {
            assert_eq!(
                decode(b't', cursor).unwrap_err().code.get(),
                -32602,
                "{cursor}"
            );
        }
    }
}
