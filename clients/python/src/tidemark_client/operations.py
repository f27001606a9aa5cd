"""The operations of the API, each with its types. Generated from docs/openapi.json: do not edit."""

from abc import ABC, abstractmethod
from typing import IO, Any, Literal, overload

from . import types
from .entries import Entries

FileBody = bytes | IO[bytes]


class Operations(ABC):
    @abstractmethod
    def _request(self, *arguments: Any, **options: Any) -> Any: ...

    @abstractmethod
    def _list(self, *arguments: Any, **options: Any) -> Any: ...

    @abstractmethod
    def _export(self, *arguments: Any, **options: Any) -> Any: ...

    @overload
    def get(self, path: Literal['/account-videos'], parameters: types.ListAccountVideosParameters = ..., /, *, timeout: float | None = None) -> types.ListAccountVideosResponse:
        """List account-discovered videos"""

    @overload
    def get(self, path: Literal['/account-videos/metrics'], parameters: types.GetAccountVideoMetricsParameters = ..., /, *, timeout: float | None = None) -> types.GetAccountVideoMetricsResponse:
        """Get metrics of account videos"""

    @overload
    def get(self, path: Literal['/account-videos/{video_id}'], parameters: types.GetAccountVideoParameters, /, *, timeout: float | None = None) -> types.GetAccountVideoResponse:
        """Get an account-discovered video"""

    @overload
    def get(self, path: Literal['/accounts'], parameters: types.ListAccountsParameters = ..., /, *, timeout: float | None = None) -> types.ListAccountsResponse:
        """List accounts"""

    @overload
    def get(self, path: Literal['/accounts/categories'], /, *, timeout: float | None = None) -> types.ListAccountCategoriesResponse:
        """List categories"""

    @overload
    def get(self, path: Literal['/accounts/metrics'], parameters: types.GetAccountMetricsParameters, /, *, timeout: float | None = None) -> types.GetAccountMetricsResponse:
        """Get metrics of accounts"""

    @overload
    def get(self, path: Literal['/accounts/stats'], /, *, timeout: float | None = None) -> types.ListAccountStatsResponse:
        """List post counts of accounts"""

    @overload
    def get(self, path: Literal['/accounts/timeseries'], parameters: types.GetAccountSparklinesParameters, /, *, timeout: float | None = None) -> types.GetAccountSparklinesResponse:
        """Get daily metrics of accounts"""

    @overload
    def get(self, path: Literal['/accounts/top'], parameters: types.ListTopAccountsParameters = ..., /, *, timeout: float | None = None) -> types.ListTopAccountsResponse:
        """Rank accounts by gains"""

    @overload
    def get(self, path: Literal['/accounts/{account_id}'], parameters: types.GetAccountParameters, /, *, timeout: float | None = None) -> types.GetAccountResponse:
        """Get an account"""

    @overload
    def get(self, path: Literal['/accounts/{account_id}/analytics'], parameters: types.GetAccountAnalyticsParameters, /, *, timeout: float | None = None) -> types.GetAccountAnalyticsResponse:
        """Get an account's daily analytics"""

    @overload
    def get(self, path: Literal['/accounts/{account_id}/benchmarks'], parameters: types.GetAccountBenchmarksParameters, /, *, timeout: float | None = None) -> types.GetAccountBenchmarksResponse:
        """Get benchmarks of an account"""

    @overload
    def get(self, path: Literal['/accounts/{account_id}/videos'], parameters: types.ListVideosOfAccountParameters, /, *, timeout: float | None = None) -> types.ListVideosOfAccountResponse:
        """List an account's videos"""

    @overload
    def get(self, path: Literal['/analytics/timeseries'], parameters: types.GetTimeseriesParameters = ..., /, *, timeout: float | None = None) -> types.GetTimeseriesResponse:
        """Get a time series"""

    @overload
    def get(self, path: Literal['/collections'], parameters: types.ListCollectionsParameters = ..., /, *, timeout: float | None = None) -> types.ListCollectionsResponse:
        """List collections"""

    @overload
    def get(self, path: Literal['/collections/{collection_id}'], parameters: types.GetCollectionParameters, /, *, timeout: float | None = None) -> types.GetCollectionResponse:
        """Get a collection"""

    @overload
    def get(self, path: Literal['/collections/{collection_id}/accounts'], parameters: types.ListCollectionAccountsParameters, /, *, timeout: float | None = None) -> types.ListCollectionAccountsResponse:
        """List a collection's accounts"""

    @overload
    def get(self, path: Literal['/collections/{collection_id}/creators'], parameters: types.ListCollectionCreatorsParameters, /, *, timeout: float | None = None) -> types.ListCollectionCreatorsResponse:
        """List a collection's creators"""

    @overload
    def get(self, path: Literal['/collections/{collection_id}/overview'], parameters: types.GetCollectionOverviewParameters, /, *, timeout: float | None = None) -> types.GetCollectionOverviewResponse:
        """Get a collection's overview"""

    @overload
    def get(self, path: Literal['/collections/{collection_id}/payouts'], parameters: types.ListCollectionPayoutsParameters, /, *, timeout: float | None = None) -> types.ListCollectionPayoutsResponse:
        """Get payouts"""

    @overload
    def get(self, path: Literal['/collections/{collection_id}/payouts/videos'], parameters: types.ListCollectionPayoutVideosParameters, /, *, timeout: float | None = None) -> types.ListCollectionPayoutVideosResponse:
        """List payouts by video"""

    @overload
    def get(self, path: Literal['/collections/{collection_id}/shares'], parameters: types.ListCollectionSharesParameters, /, *, timeout: float | None = None) -> types.ListCollectionSharesResponse:
        """List a collection's shares"""

    @overload
    def get(self, path: Literal['/collections/{collection_id}/shares/{share_id}'], parameters: types.GetCollectionShareParameters, /, *, timeout: float | None = None) -> types.GetCollectionShareResponse:
        """Get a share"""

    @overload
    def get(self, path: Literal['/collections/{collection_id}/timeseries'], parameters: types.GetCollectionTimeseriesParameters, /, *, timeout: float | None = None) -> types.GetCollectionTimeseriesResponse:
        """Get a collection's time series"""

    @overload
    def get(self, path: Literal['/collections/{collection_id}/videos'], parameters: types.ListCollectionVideosParameters, /, *, timeout: float | None = None) -> types.ListCollectionVideosResponse:
        """List a collection's videos"""

    @overload
    def get(self, path: Literal['/collections/{collection_id}/videos/{video_id}'], parameters: types.GetCollectionMarkParameters, /, *, timeout: float | None = None) -> types.GetCollectionMarkResponse:
        """Get a mark"""

    @overload
    def get(self, path: Literal['/content'], parameters: types.ListContentParameters = ..., /, *, timeout: float | None = None) -> types.ListContentResponse:
        """List content"""

    @overload
    def get(self, path: Literal['/content/ages'], parameters: types.ListContentAgesParameters, /, *, timeout: float | None = None) -> types.ListContentAgesResponse:
        """List video views by age"""

    @overload
    def get(self, path: Literal['/content/breakouts'], parameters: types.ListBreakoutsParameters = ..., /, *, timeout: float | None = None) -> types.ListBreakoutsResponse:
        """Find breakout videos"""

    @overload
    def get(self, path: Literal['/content/hashtags'], parameters: types.ListHashtagsParameters = ..., /, *, timeout: float | None = None) -> types.ListHashtagsResponse:
        """Rank hashtags by gains"""

    @overload
    def get(self, path: Literal['/content/timeseries'], parameters: types.GetContentSparklinesParameters, /, *, timeout: float | None = None) -> types.GetContentSparklinesResponse:
        """Get daily metrics of videos"""

    @overload
    def get(self, path: Literal['/content/top'], parameters: types.ListTopContentParameters = ..., /, *, timeout: float | None = None) -> types.ListTopContentResponse:
        """Rank videos by gains"""

    @overload
    def get(self, path: Literal['/content/{video_id}'], parameters: types.GetContentParameters, /, *, timeout: float | None = None) -> types.GetContentResponse:
        """Get a video"""

    @overload
    def get(self, path: Literal['/content/{video_id}/ages'], parameters: types.GetContentAgesParameters, /, *, timeout: float | None = None) -> types.GetContentAgesResponse:
        """Get video views by age"""

    @overload
    def get(self, path: Literal['/creators'], parameters: types.ListCreatorsParameters = ..., /, *, timeout: float | None = None) -> types.ListCreatorsResponse:
        """List creators"""

    @overload
    def get(self, path: Literal['/creators/metrics'], parameters: types.GetCreatorMetricsParameters, /, *, timeout: float | None = None) -> types.GetCreatorMetricsResponse:
        """Get metrics of creators"""

    @overload
    def get(self, path: Literal['/creators/timeseries'], parameters: types.GetCreatorSparklinesParameters, /, *, timeout: float | None = None) -> types.GetCreatorSparklinesResponse:
        """Get daily metrics of creators"""

    @overload
    def get(self, path: Literal['/creators/top'], parameters: types.ListTopCreatorsParameters = ..., /, *, timeout: float | None = None) -> types.ListTopCreatorsResponse:
        """Rank creators by gains"""

    @overload
    def get(self, path: Literal['/creators/{creator_id}'], parameters: types.GetCreatorParameters, /, *, timeout: float | None = None) -> types.GetCreatorResponse:
        """Get a creator"""

    @overload
    def get(self, path: Literal['/creators/{creator_id}/accounts/{account_id}'], parameters: types.GetCreatorAccountParameters, /, *, timeout: float | None = None) -> types.GetCreatorAccountResponse:
        """Get a creator link"""

    @overload
    def get(self, path: Literal['/creators/{creator_id}/analytics'], parameters: types.GetCreatorAnalyticsParameters, /, *, timeout: float | None = None) -> types.GetCreatorAnalyticsResponse:
        """Get a creator's daily analytics"""

    @overload
    def get(self, path: Literal['/creators/{creator_id}/analytics/timeseries'], parameters: types.GetCreatorTimeseriesParameters, /, *, timeout: float | None = None) -> types.GetCreatorTimeseriesResponse:
        """Get a creator's daily gains"""

    @overload
    def get(self, path: Literal['/events'], parameters: types.ListEventsParameters = ..., /, *, timeout: float | None = None) -> types.ListEventsResponse:
        """List events"""

    @overload
    def get(self, path: Literal['/health'], /, *, timeout: float | None = None) -> types.GetHealthResponse:
        """Check the health"""

    @overload
    def get(self, path: Literal['/imports'], parameters: types.ListImportsParameters = ..., /, *, timeout: float | None = None) -> types.ListImportsResponse:
        """List imports"""

    @overload
    def get(self, path: Literal['/imports/{import_id}'], parameters: types.GetImportParameters, /, *, timeout: float | None = None) -> types.GetImportResponse:
        """Get an import"""

    @overload
    def get(self, path: Literal['/meta'], /, *, timeout: float | None = None) -> types.GetMetaResponse:
        """Get the API version"""

    @overload
    def get(self, path: Literal['/openapi.json'], /, *, timeout: float | None = None) -> dict[str, Any]:
        """Get the OpenAPI document"""

    @overload
    def get(self, path: Literal['/overview'], parameters: types.GetOverviewParameters = ..., /, *, timeout: float | None = None) -> types.GetOverviewResponse:
        """Get the organization's overview"""

    @overload
    def get(self, path: Literal['/search'], parameters: types.SearchParameters = ..., /, *, timeout: float | None = None) -> types.SearchResponse:
        """Search names and captions"""

    @overload
    def get(self, path: Literal['/shared'], /, *, timeout: float | None = None) -> types.GetSharedReportResponse:
        """Get a shared report"""

    @overload
    def get(self, path: Literal['/shared/accounts'], parameters: types.ListSharedAccountsParameters = ..., /, *, timeout: float | None = None) -> types.ListSharedAccountsResponse:
        """List a report's accounts"""

    @overload
    def get(self, path: Literal['/shared/content'], parameters: types.ListSharedContentParameters = ..., /, *, timeout: float | None = None) -> types.ListSharedContentResponse:
        """List a report's content"""

    @overload
    def get(self, path: Literal['/shared/creators'], parameters: types.ListSharedCreatorsParameters = ..., /, *, timeout: float | None = None) -> types.ListSharedCreatorsResponse:
        """List a report's creators"""

    @overload
    def get(self, path: Literal['/shared/overview'], parameters: types.GetSharedOverviewParameters = ..., /, *, timeout: float | None = None) -> types.GetSharedOverviewResponse:
        """Get a report's overview"""

    @overload
    def get(self, path: Literal['/shared/payouts'], parameters: types.ListSharedPayoutsParameters = ..., /, *, timeout: float | None = None) -> types.ListSharedPayoutsResponse:
        """Get a report's payouts"""

    @overload
    def get(self, path: Literal['/shared/timeseries'], parameters: types.GetSharedTimeseriesParameters = ..., /, *, timeout: float | None = None) -> types.GetSharedTimeseriesResponse:
        """Get a report's time series"""

    @overload
    def get(self, path: Literal['/tracking'], /, *, timeout: float | None = None) -> types.GetTrackingResponse:
        """Get the state of tracking"""

    @overload
    def get(self, path: Literal['/tracking/coverage'], parameters: types.GetTrackingCoverageParameters = ..., /, *, timeout: float | None = None) -> types.GetTrackingCoverageResponse:
        """Get daily coverage"""

    @overload
    def get(self, path: Literal['/videos'], parameters: types.ListVideosParameters = ..., /, *, timeout: float | None = None) -> types.ListVideosResponse:
        """List individually tracked videos"""

    @overload
    def get(self, path: Literal['/videos/deltas'], parameters: types.GetVideoDeltasParameters, /, *, timeout: float | None = None) -> types.GetVideoDeltasResponse:
        """Get view deltas of videos"""

    @overload
    def get(self, path: Literal['/videos/metrics'], parameters: types.GetVideoMetricsParameters, /, *, timeout: float | None = None) -> types.GetVideoMetricsResponse:
        """Get metrics of videos"""

    @overload
    def get(self, path: Literal['/videos/{video_id}'], parameters: types.GetVideoParameters, /, *, timeout: float | None = None) -> types.GetVideoResponse:
        """Get an individually tracked video"""

    @overload
    def get(self, path: Literal['/videos/{video_id}/analytics'], parameters: types.GetVideoAnalyticsParameters, /, *, timeout: float | None = None) -> types.GetVideoAnalyticsResponse:
        """Get a video's daily analytics"""

    @overload
    def get(self, path: Literal['/webhooks'], parameters: types.ListWebhooksParameters = ..., /, *, timeout: float | None = None) -> types.ListWebhooksResponse:
        """List webhooks"""

    @overload
    def get(self, path: Literal['/webhooks/{webhook_id}'], parameters: types.GetWebhookParameters, /, *, timeout: float | None = None) -> types.GetWebhookResponse:
        """Get a webhook"""

    @overload
    def get(self, path: Literal['/webhooks/{webhook_id}/deliveries'], parameters: types.ListWebhookDeliveriesParameters, /, *, timeout: float | None = None) -> types.ListWebhookDeliveriesResponse:
        """List a webhook's deliveries"""

    @overload
    def get(self, path: Literal['/whoami'], /, *, timeout: float | None = None) -> types.GetIdentityResponse:
        """Identify the API key"""

    def get(self, path: str, parameters: Any = None, /, *, timeout: float | None = None) -> Any:
        return self._request("GET", path, parameters, timeout=timeout)

    @overload
    def post(self, path: Literal['/account-videos/metrics'], /, *, body: types.QueryAccountVideoMetricsBody, timeout: float | None = None, idempotency_key: str | None = None) -> types.QueryAccountVideoMetricsResponse:
        """Query metrics of account videos"""

    @overload
    def post(self, path: Literal['/accounts'], /, *, body: types.CreateAccountBody, timeout: float | None = None, idempotency_key: str | None = None) -> types.CreateAccountResponse:
        """Track an account"""

    @overload
    def post(self, path: Literal['/accounts/batch'], /, *, body: types.CreateAccountsBody, timeout: float | None = None, idempotency_key: str | None = None) -> types.CreateAccountsResponse:
        """Track up to 500 accounts"""

    @overload
    def post(self, path: Literal['/accounts/metrics'], /, *, body: types.QueryAccountMetricsBody, timeout: float | None = None, idempotency_key: str | None = None) -> types.QueryAccountMetricsResponse:
        """Query metrics of accounts"""

    @overload
    def post(self, path: Literal['/accounts/refresh'], /, *, body: types.RefreshAccountsBody, timeout: float | None = None, idempotency_key: str | None = None) -> types.RefreshAccountsResponse:
        """Refresh up to 100 accounts"""

    @overload
    def post(self, path: Literal['/accounts/{account_id}/refresh'], parameters: types.RefreshAccountParameters, /, *, timeout: float | None = None, idempotency_key: str | None = None) -> types.RefreshAccountResponse:
        """Refresh an account"""

    @overload
    def post(self, path: Literal['/collections'], /, *, body: types.CreateCollectionBody, timeout: float | None = None, idempotency_key: str | None = None) -> types.CreateCollectionResponse:
        """Create a collection"""

    @overload
    def post(self, path: Literal['/collections/{collection_id}/shares'], parameters: types.CreateCollectionShareParameters, /, *, body: types.CreateCollectionShareBody, timeout: float | None = None, idempotency_key: str | None = None) -> types.CreateCollectionShareResponse:
        """Share a collection"""

    @overload
    def post(self, path: Literal['/collections/{collection_id}/videos'], parameters: types.MarkCollectionVideosParameters, /, *, body: types.MarkCollectionVideosBody, timeout: float | None = None, idempotency_key: str | None = None) -> types.MarkCollectionVideosResponse:
        """Mark many videos"""

    @overload
    def post(self, path: Literal['/creators'], /, *, body: types.CreateCreatorBody, timeout: float | None = None, idempotency_key: str | None = None) -> types.CreateCreatorResponse:
        """Create a creator"""

    @overload
    def post(self, path: Literal['/creators/metrics'], /, *, body: types.QueryCreatorMetricsBody, timeout: float | None = None, idempotency_key: str | None = None) -> types.QueryCreatorMetricsResponse:
        """Query metrics of creators"""

    @overload
    def post(self, path: Literal['/import'], parameters: types.CreateImportParameters = ..., /, *, body: FileBody, timeout: float | None = None, idempotency_key: str | None = None) -> types.CreateImportResponse:
        """Import a file"""

    @overload
    def post(self, path: Literal['/videos'], /, *, body: types.CreateVideoBody, timeout: float | None = None, idempotency_key: str | None = None) -> types.CreateVideoResponse:
        """Track a video"""

    @overload
    def post(self, path: Literal['/videos/batch'], /, *, body: types.CreateVideosBody, timeout: float | None = None, idempotency_key: str | None = None) -> types.CreateVideosResponse:
        """Track up to 500 videos"""

    @overload
    def post(self, path: Literal['/videos/deltas'], /, *, body: types.QueryVideoDeltasBody, timeout: float | None = None, idempotency_key: str | None = None) -> types.QueryVideoDeltasResponse:
        """Query view deltas of videos"""

    @overload
    def post(self, path: Literal['/videos/metrics'], /, *, body: types.QueryVideoMetricsBody, timeout: float | None = None, idempotency_key: str | None = None) -> types.QueryVideoMetricsResponse:
        """Query metrics of videos"""

    @overload
    def post(self, path: Literal['/videos/{video_id}/refresh'], parameters: types.RefreshVideoParameters, /, *, timeout: float | None = None, idempotency_key: str | None = None) -> types.RefreshVideoResponse:
        """Refresh a video"""

    @overload
    def post(self, path: Literal['/webhooks'], /, *, body: types.CreateWebhookBody, timeout: float | None = None, idempotency_key: str | None = None) -> types.CreateWebhookResponse:
        """Create a webhook"""

    @overload
    def post(self, path: Literal['/webhooks/{webhook_id}/deliveries/{delivery_id}/retry'], parameters: types.RetryWebhookDeliveryParameters, /, *, timeout: float | None = None, idempotency_key: str | None = None) -> types.RetryWebhookDeliveryResponse:
        """Retry a delivery"""

    @overload
    def post(self, path: Literal['/webhooks/{webhook_id}/rotate-secret'], parameters: types.RotateWebhookSecretParameters, /, *, timeout: float | None = None, idempotency_key: str | None = None) -> types.RotateWebhookSecretResponse:
        """Rotate a webhook's secret"""

    @overload
    def post(self, path: Literal['/webhooks/{webhook_id}/test'], parameters: types.TestWebhookParameters, /, *, timeout: float | None = None, idempotency_key: str | None = None) -> types.TestWebhookResponse:
        """Test a webhook"""

    def post(self, path: str, parameters: Any = None, /, *, body: Any = None, timeout: float | None = None, idempotency_key: str | None = None) -> Any:
        return self._request("POST", path, parameters, timeout=timeout, body=body, idempotency_key=idempotency_key)

    @overload
    def patch(self, path: Literal['/accounts/batch'], /, *, body: types.UpdateAccountsBody, timeout: float | None = None, idempotency_key: str | None = None) -> types.UpdateAccountsResponse:
        """Update up to 500 accounts"""

    @overload
    def patch(self, path: Literal['/accounts/{account_id}'], parameters: types.UpdateAccountParameters, /, *, body: types.UpdateAccountBody, timeout: float | None = None, idempotency_key: str | None = None) -> types.UpdateAccountResponse:
        """Update an account"""

    @overload
    def patch(self, path: Literal['/collections/{collection_id}'], parameters: types.UpdateCollectionParameters, /, *, body: types.UpdateCollectionBody, timeout: float | None = None, idempotency_key: str | None = None) -> types.UpdateCollectionResponse:
        """Update a collection"""

    @overload
    def patch(self, path: Literal['/creators/{creator_id}'], parameters: types.UpdateCreatorParameters, /, *, body: types.UpdateCreatorBody, timeout: float | None = None, idempotency_key: str | None = None) -> types.UpdateCreatorResponse:
        """Update a creator"""

    @overload
    def patch(self, path: Literal['/videos/{video_id}'], parameters: types.UpdateVideoParameters, /, *, body: types.UpdateVideoBody, timeout: float | None = None, idempotency_key: str | None = None) -> types.UpdateVideoResponse:
        """Update a video"""

    @overload
    def patch(self, path: Literal['/webhooks/{webhook_id}'], parameters: types.UpdateWebhookParameters, /, *, body: types.UpdateWebhookBody, timeout: float | None = None, idempotency_key: str | None = None) -> types.UpdateWebhookResponse:
        """Update a webhook"""

    def patch(self, path: str, parameters: Any = None, /, *, body: Any = None, timeout: float | None = None, idempotency_key: str | None = None) -> Any:
        return self._request("PATCH", path, parameters, timeout=timeout, body=body, idempotency_key=idempotency_key)

    @overload
    def put(self, path: Literal['/collections/{collection_id}/videos/{video_id}'], parameters: types.MarkCollectionVideoParameters, /, *, body: types.MarkCollectionVideoBody, timeout: float | None = None) -> types.MarkCollectionVideoResponse:
        """Mark a video"""

    @overload
    def put(self, path: Literal['/creators/{creator_id}/accounts/{account_id}'], parameters: types.LinkCreatorAccountParameters, /, *, timeout: float | None = None) -> types.LinkCreatorAccountResponse:
        """Create a creator link"""

    def put(self, path: str, parameters: Any = None, /, *, body: Any = None, timeout: float | None = None) -> Any:
        return self._request("PUT", path, parameters, timeout=timeout, body=body)

    @overload
    def delete(self, path: Literal['/accounts/{account_id}'], parameters: types.DeleteAccountParameters, /, *, timeout: float | None = None) -> None:
        """Delete an account"""

    @overload
    def delete(self, path: Literal['/collections/{collection_id}'], parameters: types.DeleteCollectionParameters, /, *, timeout: float | None = None) -> None:
        """Delete a collection"""

    @overload
    def delete(self, path: Literal['/collections/{collection_id}/shares/{share_id}'], parameters: types.DeleteCollectionShareParameters, /, *, timeout: float | None = None) -> None:
        """Revoke a share"""

    @overload
    def delete(self, path: Literal['/collections/{collection_id}/videos/{video_id}'], parameters: types.UnmarkCollectionVideoParameters, /, *, timeout: float | None = None) -> None:
        """Remove a mark"""

    @overload
    def delete(self, path: Literal['/creators/{creator_id}'], parameters: types.DeleteCreatorParameters, /, *, timeout: float | None = None) -> None:
        """Delete a creator"""

    @overload
    def delete(self, path: Literal['/creators/{creator_id}/accounts/{account_id}'], parameters: types.UnlinkCreatorAccountParameters, /, *, timeout: float | None = None) -> None:
        """Delete a creator link"""

    @overload
    def delete(self, path: Literal['/imports/{import_id}'], parameters: types.CancelImportParameters, /, *, timeout: float | None = None) -> None:
        """Cancel an import"""

    @overload
    def delete(self, path: Literal['/videos/{video_id}'], parameters: types.DeleteVideoParameters, /, *, timeout: float | None = None) -> None:
        """Stop tracking a video"""

    @overload
    def delete(self, path: Literal['/webhooks/{webhook_id}'], parameters: types.DeleteWebhookParameters, /, *, timeout: float | None = None) -> None:
        """Delete a webhook"""

    def delete(self, path: str, parameters: Any = None, /, *, timeout: float | None = None) -> Any:
        return self._request("DELETE", path, parameters, timeout=timeout)

    @overload
    def list(self, path: Literal['/account-videos'], parameters: types.ListAccountVideosParameters = ..., /, *, timeout: float | None = None) -> Entries[types.Video, types.ListAccountVideosResponse]:
        """List account-discovered videos"""

    @overload
    def list(self, path: Literal['/accounts'], parameters: types.ListAccountsParameters = ..., /, *, timeout: float | None = None) -> Entries[types.Account, types.ListAccountsResponse]:
        """List accounts"""

    @overload
    def list(self, path: Literal['/accounts/top'], parameters: types.ListTopAccountsParameters = ..., /, *, timeout: float | None = None) -> Entries[types.TopAccount, types.ListTopAccountsResponse]:
        """Rank accounts by gains"""

    @overload
    def list(self, path: Literal['/accounts/{account_id}/videos'], parameters: types.ListVideosOfAccountParameters, /, *, timeout: float | None = None) -> Entries[types.Video, types.ListVideosOfAccountResponse]:
        """List an account's videos"""

    @overload
    def list(self, path: Literal['/collections'], parameters: types.ListCollectionsParameters = ..., /, *, timeout: float | None = None) -> Entries[types.Collection, types.ListCollectionsResponse]:
        """List collections"""

    @overload
    def list(self, path: Literal['/collections/{collection_id}/accounts'], parameters: types.ListCollectionAccountsParameters, /, *, timeout: float | None = None) -> Entries[types.CollectionAccount, types.ListCollectionAccountsResponse]:
        """List a collection's accounts"""

    @overload
    def list(self, path: Literal['/collections/{collection_id}/creators'], parameters: types.ListCollectionCreatorsParameters, /, *, timeout: float | None = None) -> Entries[types.CollectionCreator, types.ListCollectionCreatorsResponse]:
        """List a collection's creators"""

    @overload
    def list(self, path: Literal['/collections/{collection_id}/payouts/videos'], parameters: types.ListCollectionPayoutVideosParameters, /, *, timeout: float | None = None) -> Entries[types.PaidVideo, types.ListCollectionPayoutVideosResponse]:
        """List payouts by video"""

    @overload
    def list(self, path: Literal['/collections/{collection_id}/shares'], parameters: types.ListCollectionSharesParameters, /, *, timeout: float | None = None) -> Entries[types.CollectionShare, types.ListCollectionSharesResponse]:
        """List a collection's shares"""

    @overload
    def list(self, path: Literal['/collections/{collection_id}/videos'], parameters: types.ListCollectionVideosParameters, /, *, timeout: float | None = None) -> Entries[types.CollectionVideo, types.ListCollectionVideosResponse]:
        """List a collection's videos"""

    @overload
    def list(self, path: Literal['/content'], parameters: types.ListContentParameters = ..., /, *, timeout: float | None = None) -> Entries[types.Content, types.ListContentResponse]:
        """List content"""

    @overload
    def list(self, path: Literal['/content/breakouts'], parameters: types.ListBreakoutsParameters = ..., /, *, timeout: float | None = None) -> Entries[types.BreakoutVideo, types.ListBreakoutsResponse]:
        """Find breakout videos"""

    @overload
    def list(self, path: Literal['/content/top'], parameters: types.ListTopContentParameters = ..., /, *, timeout: float | None = None) -> Entries[types.TopContent, types.ListTopContentResponse]:
        """Rank videos by gains"""

    @overload
    def list(self, path: Literal['/creators'], parameters: types.ListCreatorsParameters = ..., /, *, timeout: float | None = None) -> Entries[types.Creator, types.ListCreatorsResponse]:
        """List creators"""

    @overload
    def list(self, path: Literal['/creators/top'], parameters: types.ListTopCreatorsParameters = ..., /, *, timeout: float | None = None) -> Entries[types.TopCreator, types.ListTopCreatorsResponse]:
        """Rank creators by gains"""

    @overload
    def list(self, path: Literal['/events'], parameters: types.ListEventsParameters = ..., /, *, timeout: float | None = None) -> Entries[types.Event, types.ListEventsResponse]:
        """List events"""

    @overload
    def list(self, path: Literal['/imports'], parameters: types.ListImportsParameters = ..., /, *, timeout: float | None = None) -> Entries[types.Import, types.ListImportsResponse]:
        """List imports"""

    @overload
    def list(self, path: Literal['/shared/accounts'], parameters: types.ListSharedAccountsParameters = ..., /, *, timeout: float | None = None) -> Entries[types.CollectionAccount, types.ListSharedAccountsResponse]:
        """List a report's accounts"""

    @overload
    def list(self, path: Literal['/shared/content'], parameters: types.ListSharedContentParameters = ..., /, *, timeout: float | None = None) -> Entries[types.TopContent, types.ListSharedContentResponse]:
        """List a report's content"""

    @overload
    def list(self, path: Literal['/shared/creators'], parameters: types.ListSharedCreatorsParameters = ..., /, *, timeout: float | None = None) -> Entries[types.CollectionCreator, types.ListSharedCreatorsResponse]:
        """List a report's creators"""

    @overload
    def list(self, path: Literal['/videos'], parameters: types.ListVideosParameters = ..., /, *, timeout: float | None = None) -> Entries[types.Video, types.ListVideosResponse]:
        """List individually tracked videos"""

    @overload
    def list(self, path: Literal['/webhooks'], parameters: types.ListWebhooksParameters = ..., /, *, timeout: float | None = None) -> Entries[types.Webhook, types.ListWebhooksResponse]:
        """List webhooks"""

    @overload
    def list(self, path: Literal['/webhooks/{webhook_id}/deliveries'], parameters: types.ListWebhookDeliveriesParameters, /, *, timeout: float | None = None) -> Entries[types.WebhookDelivery, types.ListWebhookDeliveriesResponse]:
        """List a webhook's deliveries"""

    def list(self, path: str, parameters: Any = None, /, *, timeout: float | None = None) -> Any:
        return self._list(path, parameters, timeout=timeout)

    @overload
    def export(self, path: Literal['/export/accounts.csv'], parameters: types.ExportAccountsParameters = ..., /, *, timeout: float | None = None) -> IO[bytes]:
        """Export accounts"""

    @overload
    def export(self, path: Literal['/export/accounts.parquet'], parameters: types.ExportAccountsParquetParameters = ..., /, *, timeout: float | None = None) -> IO[bytes]:
        """Export accounts as Parquet"""

    @overload
    def export(self, path: Literal['/export/content.csv'], parameters: types.ExportContentParameters = ..., /, *, timeout: float | None = None) -> IO[bytes]:
        """Export content"""

    @overload
    def export(self, path: Literal['/export/content.parquet'], parameters: types.ExportContentParquetParameters = ..., /, *, timeout: float | None = None) -> IO[bytes]:
        """Export content as Parquet"""

    @overload
    def export(self, path: Literal['/export/creators.csv'], parameters: types.ExportCreatorsParameters = ..., /, *, timeout: float | None = None) -> IO[bytes]:
        """Export creators"""

    @overload
    def export(self, path: Literal['/export/creators.parquet'], parameters: types.ExportCreatorsParquetParameters = ..., /, *, timeout: float | None = None) -> IO[bytes]:
        """Export creators as Parquet"""

    @overload
    def export(self, path: Literal['/export/daily.csv'], parameters: types.ExportDailyGainsParameters = ..., /, *, timeout: float | None = None) -> IO[bytes]:
        """Export daily gains"""

    @overload
    def export(self, path: Literal['/export/daily.parquet'], parameters: types.ExportDailyGainsParquetParameters = ..., /, *, timeout: float | None = None) -> IO[bytes]:
        """Export daily gains as Parquet"""

    @overload
    def export(self, path: Literal['/export/payout-videos.csv'], parameters: types.ExportPayoutVideosParameters, /, *, timeout: float | None = None) -> IO[bytes]:
        """Export payouts by video"""

    @overload
    def export(self, path: Literal['/export/payouts.csv'], parameters: types.ExportPayoutsParameters, /, *, timeout: float | None = None) -> IO[bytes]:
        """Export payouts"""

    def export(self, path: str, parameters: Any = None, /, *, timeout: float | None = None) -> Any:
        return self._export(path, parameters, timeout=timeout)
