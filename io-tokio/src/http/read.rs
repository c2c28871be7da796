//! Bodies of replies, as far as they are wanted.

use reqwest::Response;

/// Most bytes of an error reply's body that are read.
pub const MAX_ERROR_BODY: usize = 4096;

pub(super) enum ReadError {
    TooLarge,
    Broken(reqwest::Error),
}

/// Reads the whole body, of at most so many bytes.
pub(super) async fn whole(response: &mut Response, most: usize) -> Result<String, ReadError> {
    let announced = response.content_length().unwrap_or(0);
    if announced > most as u64 {
        return Err(ReadError::TooLarge);
    }
    let mut body = Vec::with_capacity(usize::try_from(announced).unwrap_or(0).min(MAX_ERROR_BODY));
    while let Some(chunk) = response.chunk().await.map_err(ReadError::Broken)? {
        if body.len() + chunk.len() > most {
            return Err(ReadError::TooLarge);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(text(body))
}

/// Adds the first [`MAX_ERROR_BODY`] bytes of the body to `head`, or what there is until it breaks off.
pub(super) async fn head(response: &mut Response, head: &mut Vec<u8>) {
    while head.len() < MAX_ERROR_BODY {
        let Ok(Some(chunk)) = response.chunk().await else { break };
        let wanted = chunk.len().min(MAX_ERROR_BODY - head.len());
        head.extend_from_slice(&chunk[..wanted]);
    }
}

pub(super) fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}
